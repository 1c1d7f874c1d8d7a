-- Schema version 6. A checkpoint knows which pages it wrote, so that forgetting old versions costs what was written and
-- not the state: sorted page numbers, each as the difference to the one before, in LEB128. NULL where nobody knows, and
-- where it is never asked (the first of an execution).

ALTER TABLE checkpoints ADD COLUMN pages BLOB;
