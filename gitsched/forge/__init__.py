"""GitHub and GitLab: commit statuses, pull request comments and webhook signatures."""
