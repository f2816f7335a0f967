"""The paper, reproduced: its tables, its figure and its claims, ours beside theirs, with intervals."""
