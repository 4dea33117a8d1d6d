"""The log of training and solving, `logging.getLogger("proxlearn")`: silent unless the program that
uses the library adds a handler."""

import logging

logger = logging.getLogger("proxlearn")
logger.addHandler(logging.NullHandler())
