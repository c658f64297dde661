"""`python -m outcrop` is the command."""

import sys

from outcrop.cli import main

sys.exit(main())
