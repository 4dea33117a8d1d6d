"""Where and how numbers are computed: devices, precision, captured steps, and jobs of several
processes. Rests on `common`."""
