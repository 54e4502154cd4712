"""`python -m creperie`: the command line, where no script was installed."""

from creperie.cli import main

if __name__ == "__main__":
    main()
