"""Run the command line as `python -m creperie`, for example if the script `creperie` is not installed."""

from creperie.cli import main

if __name__ == "__main__":
    main()
