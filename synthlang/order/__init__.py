"""Order models of Galactic Dependencies: the order of a node's dependents in a language (Wang & Eisner 2016)."""
