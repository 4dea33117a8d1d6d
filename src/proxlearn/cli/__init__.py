"""The command line, one file a command. Rests on everything else; what is heavy is imported where
it is used."""
