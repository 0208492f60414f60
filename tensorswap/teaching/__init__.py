"""Teaching: other ways to see a derivative, and to get one. They stand on the core, which knows nothing of them: a
program has the methods `flat` and `jacobian` from here, by the table METHODS of lazy.py."""
