"""The playground: a page in which operators run, and the folder and server that it needs. Rests on
operators and on problems; the page itself is `page/`, plain JavaScript without a build."""
