"""`python -m cuda_core` runs the demonstration of cuda_core.demo."""

import sys

from cuda_core.demo import main

sys.exit(main())
