"""Random programs of many kinds, and walks of rules over them: what property tests draw from."""
