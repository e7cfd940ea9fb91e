"""The commands of the command line, one file each. `cli.py` names those that there are."""
