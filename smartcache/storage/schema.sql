-- One truth on disk. Version: PRAGMA user_version; ours by PRAGMA application_id.
CREATE TABLE IF NOT EXISTS answers (
    id INTEGER PRIMARY KEY AUTOINCREMENT,   -- never given twice
    key TEXT NOT NULL UNIQUE,               -- digest of `request`
    request BLOB NOT NULL,                  -- canonical bytes: compared on every exact hit
    partition TEXT NOT NULL,
    scope TEXT NOT NULL,
    dialogue TEXT NOT NULL,                 -- JSON
    state BLOB,                             -- float32, NULL where the answer is served exactly only
    answer TEXT NOT NULL,                   -- JSON
    basis TEXT NOT NULL,                    -- JSON
    created_at REAL NOT NULL,
    used_at REAL NOT NULL,
    bytes INTEGER NOT NULL,
    checksum TEXT NOT NULL                  -- over everything that is served
);
CREATE INDEX IF NOT EXISTS answers_partition ON answers (partition);
CREATE INDEX IF NOT EXISTS answers_scope ON answers (scope);
CREATE INDEX IF NOT EXISTS answers_used ON answers (used_at, id, bytes);  -- all that a store asks of its limits
CREATE TABLE IF NOT EXISTS question_facts ( -- the hard facts of a question, where it has any: read before all else of it
    entry INTEGER PRIMARY KEY REFERENCES answers (id) ON DELETE CASCADE,
    stems TEXT NOT NULL                     -- a line each
);
CREATE TABLE IF NOT EXISTS evidence (
    entry INTEGER NOT NULL REFERENCES answers (id) ON DELETE CASCADE,
    source TEXT NOT NULL,
    chunk TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS evidence_chunk ON evidence (source, chunk);
CREATE INDEX IF NOT EXISTS evidence_entry ON evidence (entry);
CREATE TABLE IF NOT EXISTS facts (
    source TEXT NOT NULL, chunk TEXT NOT NULL, version TEXT NOT NULL, content TEXT, gone_since INTEGER,
    PRIMARY KEY (source, chunk)
);
CREATE TABLE IF NOT EXISTS told (           -- of facts: the update that told of each last
    source TEXT NOT NULL, chunk TEXT NOT NULL, sequence INTEGER NOT NULL,
    PRIMARY KEY (source, chunk)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS told_sequence ON told (sequence);
CREATE TABLE IF NOT EXISTS heirs (          -- of facts: where a text went that left a chunk
    source TEXT NOT NULL, chunk TEXT NOT NULL, content TEXT NOT NULL, heir TEXT NOT NULL,
    PRIMARY KEY (source, chunk, content)
);
CREATE TABLE IF NOT EXISTS replaced (source TEXT PRIMARY KEY, sequence INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS reaches (
    entry INTEGER PRIMARY KEY REFERENCES answers (id) ON DELETE CASCADE,
    similarity TEXT NOT NULL,               -- the name of what measured it
    weakest REAL NOT NULL,                  -- of what the search found
    query BLOB NOT NULL,                    -- float32
    checked INTEGER NOT NULL                -- up to this update, all that came in lies farther
);
CREATE INDEX IF NOT EXISTS reaches_similarity ON reaches (similarity);
CREATE TABLE IF NOT EXISTS growth (source TEXT NOT NULL, kind TEXT NOT NULL, since INTEGER NOT NULL, until INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS growth_place ON growth (source, kind);
CREATE INDEX IF NOT EXISTS growth_until ON growth (until);
CREATE TABLE IF NOT EXISTS wrong (
    asked TEXT NOT NULL,                    -- key of the request that got a wrong answer
    answer TEXT NOT NULL,                   -- key of the request whose answer it was
    partition TEXT NOT NULL,                -- that both were in
    state BLOB,                             -- of the request that got it
    PRIMARY KEY (asked, answer)
);
CREATE INDEX IF NOT EXISTS wrong_answer ON wrong (answer);
CREATE TABLE IF NOT EXISTS verified (       -- requests that were found to have one answer; it may be stored for either
    one TEXT NOT NULL, other TEXT NOT NULL, -- their keys, in order
    verifier TEXT NOT NULL,                 -- the name of what found it
    PRIMARY KEY (one, other, verifier)
);
CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS shadow (         -- what shadow mode would have served: figures, and no text
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    seconds REAL NOT NULL,                  -- by the cache's clock
    scope TEXT NOT NULL,
    layer TEXT NOT NULL,
    entry INTEGER NOT NULL,                 -- the answer's id; it may be gone since
    similarity REAL NOT NULL,
    accepted INTEGER NOT NULL,
    signals TEXT NOT NULL,                  -- JSON
    same_text INTEGER,                      -- these two: NULL until the model has answered
    answer_similarity REAL
);
CREATE TABLE IF NOT EXISTS hits (           -- near answers served, and reported wrong: counts, and no text
    scale TEXT NOT NULL,                    -- what the confidences are of: the weights' name, or the embedder's
    kind INTEGER NOT NULL,
    bin INTEGER NOT NULL,
    served REAL NOT NULL,                   -- these two: as of `at`, by the cache's clock
    reported REAL NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (scale, kind, bin)
);
