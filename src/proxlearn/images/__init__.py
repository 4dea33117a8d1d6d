"""Pictures: their files, and what is done to them. Rests on `common` alone."""
