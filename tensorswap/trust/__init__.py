"""Trust: programs before and after each pass, derivatives and plans held against the interpreter at tiny sizes."""
