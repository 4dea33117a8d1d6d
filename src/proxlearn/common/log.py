"""What training and solving say of their work, for `logging.getLogger("proxlearn")`: silent unless
the program that uses the library listens."""

import logging

logger = logging.getLogger("proxlearn")
logger.addHandler(logging.NullHandler())
