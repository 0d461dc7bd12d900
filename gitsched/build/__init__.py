"""Build kustomize roots from the files of a commit with the kustomize executable, isolated from the machine that it runs on."""
