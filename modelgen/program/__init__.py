"""The expression graph, the functions of an artifact and their derivatives. Needs no SymPy."""
