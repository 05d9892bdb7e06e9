"""`python -m lockhouse`."""

from . import main

main()
