"""``python -m vicinal``: the command line."""

from vicinal.cli import main

raise SystemExit(main())
