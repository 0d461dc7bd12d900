"""Plan one commit as a pure function: documents, previous output, observations and time in; decisions and the files of the output
branch out."""
