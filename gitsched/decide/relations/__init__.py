"""Compare where objects go that need each other: references, and companions such as a Service and its pods."""
