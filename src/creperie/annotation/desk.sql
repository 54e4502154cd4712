-- What an annotator at work asks of the database, for both kinds of it. Parameters are :names; what follows "lock:" is
-- added where rows can be locked (SQLite locks the whole file). $name stands for what is called so further up.

-- name: slot_columns
slot.id, slot.kind, slot.state, slot.annotator_id, slot.lease_until, slot.shown, slot.token,
       CAST(slot.shuffle AS TEXT), q.id, q.kind, q.source, q.subset, q.item, CAST(q.payload AS TEXT),
       CAST(q.expected AS TEXT)

-- name: slot
SELECT $slot_columns FROM slot JOIN question q ON q.id = slot.question_id

-- name: person_columns
a.id, a.quota, a.expires, a.revoked, a.excluded, a.withdrawn, a.created, a.consented, a.consent_version,
       a.outcome, a.finished, a.turns, a.head,
       s.id, s.task, s.state, s.phase, s.secret, CAST(s.plan AS TEXT), CAST(s.settings AS TEXT)

-- name: person
SELECT $person_columns FROM annotator a JOIN study s ON s.id = a.study_id

-- name: me
$person
WHERE a.id = :me
-- lock: FOR UPDATE OF a

-- name: me_by_session
$person
WHERE a.id = (SELECT annotator_id FROM login WHERE token_hash = :me AND expires > :now)
-- lock: FOR UPDATE OF a

-- name: me_with_slot
SELECT $person_columns, $slot_columns
FROM annotator a JOIN study s ON s.id = a.study_id JOIN slot ON slot.annotator_id = a.id
     JOIN question q ON q.id = slot.question_id
WHERE a.id = (SELECT annotator_id FROM login WHERE token_hash = :me AND expires > :now)
  AND slot.token = :token AND slot.state = 'held'
  AND NOT EXISTS (SELECT 1 FROM answer WHERE annotator_id = a.id AND key = :key)
-- lock: FOR UPDATE OF a, slot

-- name: my_open_slot
$slot
WHERE slot.annotator_id = :me AND slot.state IN ('held', 'free')
ORDER BY slot.state DESC, slot.id LIMIT 1
-- lock: FOR UPDATE OF slot

-- name: my_slot_of_token
$slot
WHERE slot.token = :token AND slot.annotator_id = :me AND slot.state = 'held'
  AND NOT EXISTS (SELECT 1 FROM answer WHERE annotator_id = :me AND key = :key)
-- lock: FOR UPDATE OF slot

-- name: slot_of_id
$slot
WHERE slot.id = :id
-- lock: FOR UPDATE OF slot

-- name: my_slot_of_question
$slot
WHERE slot.question_id = :question AND slot.annotator_id = :me

-- name: my_counts
SELECT kind, state, COUNT(*) FROM slot WHERE annotator_id = :me GROUP BY kind, state

-- name: my_rows
SELECT slot_id, kind, turn FROM answer WHERE annotator_id = :me ORDER BY turn DESC LIMIT :most

-- name: my_row_of_key
SELECT kind, CAST(value AS TEXT), slot_id FROM answer WHERE annotator_id = :me AND key = :key

-- name: next_abandoned
$slot
WHERE slot.study_id = :study AND slot.state = 'held' AND slot.kind = 'main' AND slot.phase <= :phase
  AND slot.lease_until < :now
  AND slot.question_id NOT IN (SELECT question_id FROM slot mine WHERE mine.annotator_id = :me)
  AND slot.question_id NOT IN (SELECT question_id FROM answer WHERE annotator_id = :me AND kind = 'skip')
ORDER BY slot.rank LIMIT 1
-- lock: FOR UPDATE OF slot SKIP LOCKED

-- name: first_lease
SELECT MIN(lease_until) FROM slot WHERE study_id = :study AND state = 'held' AND kind = 'main'

-- name: next_free
$slot
WHERE slot.study_id = :study AND slot.state = 'free' AND slot.kind = 'main' AND slot.phase <= :phase
  AND slot.question_id NOT IN (SELECT question_id FROM slot mine WHERE mine.annotator_id = :me)
  AND slot.question_id NOT IN (SELECT question_id FROM answer WHERE annotator_id = :me AND kind = 'skip')
ORDER BY slot.rank LIMIT 1
-- lock: FOR UPDATE OF slot SKIP LOCKED

-- name: question_counts
SELECT kind, COUNT(*) FROM question WHERE study_id = :study GROUP BY kind

-- name: save_slot
UPDATE slot SET state = :state, annotator_id = :annotator_id, lease_until = :lease_until, shown = :shown,
       token = :token, shuffle = :shuffle
WHERE id = :id

-- name: save_me
UPDATE annotator SET turns = :turns, head = :head, outcome = :outcome, finished = :finished WHERE id = :me

-- name: add_slot
INSERT INTO slot (study_id, question_id, kind, copy, rank, phase, state, annotator_id)
VALUES (:study, :question, :kind, :me, 0, 0, 'free', :me)

-- name: add_answer
INSERT INTO answer (study_id, question_id, slot_id, annotator_id, turn, kind, key, value, comment, seconds, at, digest,
                    salt, content)
VALUES (:study_id, :question_id, :slot_id, :annotator_id, :turn, :kind, :key, :value, :comment, :seconds, :at, :digest,
        :salt, :content)

-- name: finish
-- An answer in one statement, where rows can be locked; the counts are those before it.
WITH said AS ($add_answer), person AS ($save_me)
$save_slot
RETURNING (SELECT json_agg(json_build_array(own.kind, own.state, own.count)) FROM ($my_counts) own)
