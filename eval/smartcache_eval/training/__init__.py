"""How the weights beside the package were made: the dialogue state's digest, and the confidence of a pair."""
