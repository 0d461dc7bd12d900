"""Caches that a run leaves for the next one. Any entry may be lost at any time: the next run then takes longer, with the same output.

| what is cached                            | keyed by                                  | where     | discarded                          |
| ----------------------------------------- | ----------------------------------------- | --------- | ---------------------------------- |
| `ParseCache`: parsed files and records    | blob id, kind of file, parser options     | memory, A | memory: more than 2 x the last     |
|                                           |                                           |           | plan; A: corrupt, or another build |
| `Caches.record_bodies`: decoded records   | blob id                                   | memory    | with the parsed files in memory    |
| `TreeCache`: files of the source tree     | tree id                                   | memory    | the next source tree               |
| `DecisionCache`: decisions that changed   | document, its records, inputs of engines  | memory    | a change of API documents,         |
| no record                                 |                                           |           | quarantined documents or settings  |
| `RenderCache`: files of a complete plan   | outcome; facts and manifests of a cluster | memory    | the next complete plan             |
| `PlanCache`: state of the last plan       | build, source, output, paths; source tree | memory, B | any mismatch, a corrupt row, or    |
|                                           | and output tree                           |           | another process that wrote B       |
| `PlanTree`: the same of large fleets      | build and options; source tree            | Git refs  | any mismatch, a damaged part       |
|                                           | and output tree                           |           |                                    |
| `LastWritten`: the last committed plan    | output tree                               | memory    | the next complete plan             |
| `Caches.metric_values`: observed values   | metric query                              | memory    | the end of the process             |
| `BuildCache`: objects of kustomize roots  | files of the root, version of the builder | memory, C | more than 20,000 results           |
| `RootDocumentCache`: documents of roots   | files of the root, version of the builder,| memory, D | the next read; D: corrupt          |
|                                           | build, repository, parser options         |           |                                    |
| `IdleAnswers`: text of a run that found   | build, options, environment, all refs;    | E         | any mismatch, another plan cache,  |
| nothing to do                             | the plan cache                            |           | or something is due                |
| digest of the code of a checkout          | sizes and times of its files              | memory, F | any mismatch                       |

A build is the code with the filters and policy APIs that a program has added (`gitsched.reconcile.package_digest`).

On disk, in the cache directory of the user: A is `parsed-<build>.sqlite3`, B is `plan-<key>.sqlite3`, C is `built.sqlite3`, D is
`roots-<key>.pickle`, E is `idle-<repository>.json`, F is `code.json`. `Caches` holds A to D; `ownership` decides which files are trusted,
`plan_file` has the rows of B, and `row_format` serializes those of B and D. `DecisionCache` and `RenderCache` belong to the pure package
`decide`, which receives them as arguments.
"""
