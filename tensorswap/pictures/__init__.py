"""Pictures of programs and plans as SVG, which no other program has to be installed for."""
