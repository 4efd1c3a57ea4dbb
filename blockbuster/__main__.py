"""`python -m blockbuster`: the same command line as the `blockbuster` script."""

import sys

if __name__ == "__main__":
    from blockbuster.view.cli import main

    sys.exit(main())
