"""What a run remembers for the next one. Each entry may be lost at any time; the next run then does more work and writes the same bytes.

| what | keyed by | where | discarded |
| --- | --- | --- | --- |
| `ParseCache`: parsed source files and records | blob id, kind of file, replica paths, ignored rules | memory; `parsed-<build>.sqlite3` | \
memory: more than twice the files of the last complete plan; file: corrupt, or of another build |
| `Caches.record_bodies`: decoded records | blob id | memory | together with the parsed files in memory |
| `TreeCache`: files of the last source tree | tree id | memory | the next source tree |
| `DecisionCache`: decisions that changed nothing | document, its records, inputs of the engines | memory | any change of API documents, \
quarantined documents or settings |
| `RenderCache`: files of the last complete plan | outcome; facts and manifests of a cluster | memory | the next complete plan |
| `PlanCache`: state of the last plan | build, source, output, paths; source tree and output tree | memory; `plan-<key>.sqlite3` | any \
mismatch, a corrupt row, another process that wrote the file |
| `LastWritten`: the last complete plan that was committed | output tree | memory | the next complete plan |
| `Caches.metric_values`: values for compared plans | metric query | memory | the end of the process |

`Caches` holds all of them. `storage` decides which cache files are trusted, and serializes rows.
"""
