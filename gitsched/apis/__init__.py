"""The policy APIs gitsched speaks: which kinds they read, how they ask the scheduler, how decisions become their documents."""
