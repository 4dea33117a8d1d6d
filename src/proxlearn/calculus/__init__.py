"""Derivatives of objectives and what follows from them: curvature, polish, certificates. Rests on
`problems` and what that rests on."""
