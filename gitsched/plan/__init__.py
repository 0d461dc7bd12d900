"""The pure function: documents, the previous output and the moment in; decisions and the files of the output branch out."""
