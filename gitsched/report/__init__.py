"""What a run decided, for people and for machines. Pure: values in, text or plain data out."""
