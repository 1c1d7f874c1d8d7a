-- Schema version 9. A checkpoint knows how much was written since its execution's state was last weighed, so that a state is
-- weighed after so much and not once for each process. NULL where nobody knows.

ALTER TABLE checkpoints ADD COLUMN unweighed INTEGER;

-- What the program had written to files by then (bytes): its quota is for its life.

ALTER TABLE checkpoints ADD COLUMN written INTEGER NOT NULL DEFAULT 0;
