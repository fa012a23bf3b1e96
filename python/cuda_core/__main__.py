"""`python -m cuda_core` runs the demonstration of cuda_core.demo."""

import sys

from cuda_core.demo import main

if __name__ == "__main__":
    sys.exit(main())
