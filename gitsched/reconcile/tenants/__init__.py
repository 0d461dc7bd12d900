"""Read a source whose directories belong to tenants."""
