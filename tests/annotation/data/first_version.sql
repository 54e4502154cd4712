-- The tables of `creperie.annotation.schema`, for SQLite and PostgreSQL. Statements are separated by blank lines;
-- {id}, {float} and {bytes} are the types that the two call differently.
CREATE TABLE attempt (
  who VARCHAR(80) NOT NULL,
  at {float} NOT NULL,
  id {id} NOT NULL,
  CONSTRAINT pk_attempt PRIMARY KEY (id)
);

CREATE INDEX ix_attempt_who ON attempt (who, at);

CREATE TABLE owner (
  name VARCHAR(64) NOT NULL,
  password VARCHAR(255) NOT NULL,
  role VARCHAR(16) NOT NULL,
  created {float} NOT NULL,
  totp VARCHAR(64),
  id {id} NOT NULL,
  CONSTRAINT pk_owner PRIMARY KEY (id),
  CONSTRAINT uq_owner_name UNIQUE (name)
);

CREATE TABLE study (
  name VARCHAR(64) NOT NULL,
  task VARCHAR(32) NOT NULL,
  instructions TEXT NOT NULL,
  plan JSON NOT NULL,
  bench JSON NOT NULL,
  state VARCHAR(16) NOT NULL,
  phase INTEGER NOT NULL,
  created {float} NOT NULL,
  secret VARCHAR(64) NOT NULL,
  settings JSON NOT NULL,
  events INTEGER NOT NULL,
  head VARCHAR(64) NOT NULL,
  archived {float},
  id {id} NOT NULL,
  CONSTRAINT pk_study PRIMARY KEY (id),
  CONSTRAINT uq_study_name UNIQUE (name)
);

CREATE TABLE annotator (
  study_id INTEGER NOT NULL,
  pseudonym VARCHAR(64) NOT NULL,
  note TEXT NOT NULL,
  token_hash VARCHAR(64),
  quota INTEGER,
  expires {float},
  revoked {float},
  created {float} NOT NULL,
  worker VARCHAR(64),
  consented {float},
  consent_version VARCHAR(16),
  excluded {float},
  excluded_why TEXT NOT NULL,
  withdrawn {float},
  finished {float},
  outcome VARCHAR(16) NOT NULL,
  turns INTEGER NOT NULL,
  head VARCHAR(64) NOT NULL,
  id {id} NOT NULL,
  CONSTRAINT pk_annotator PRIMARY KEY (id),
  CONSTRAINT uq_annotator_study_id UNIQUE (study_id, pseudonym),
  CONSTRAINT fk_annotator_study_id FOREIGN KEY(study_id) REFERENCES study (id),
  CONSTRAINT uq_annotator_token_hash UNIQUE (token_hash)
);

CREATE UNIQUE INDEX ix_annotator_worker ON annotator (study_id, worker);

CREATE TABLE attachment (
  study_id INTEGER NOT NULL,
  name VARCHAR(255) NOT NULL,
  media_type VARCHAR(32) NOT NULL,
  data {bytes} NOT NULL,
  id {id} NOT NULL,
  CONSTRAINT pk_attachment PRIMARY KEY (id),
  CONSTRAINT uq_attachment_study_id UNIQUE (study_id, name),
  CONSTRAINT fk_attachment_study_id FOREIGN KEY(study_id) REFERENCES study (id)
);

CREATE TABLE event (
  study_id INTEGER,
  at {float} NOT NULL,
  actor VARCHAR(80) NOT NULL,
  what VARCHAR(64) NOT NULL,
  detail JSON NOT NULL,
  digest VARCHAR(64),
  id {id} NOT NULL,
  CONSTRAINT pk_event PRIMARY KEY (id),
  CONSTRAINT fk_event_study_id FOREIGN KEY(study_id) REFERENCES study (id)
);

CREATE INDEX ix_event_study ON event (study_id);

CREATE TABLE question (
  study_id INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  kind VARCHAR(16) NOT NULL,
  source VARCHAR(255) NOT NULL,
  subset TEXT NOT NULL,
  item TEXT NOT NULL,
  payload JSON NOT NULL,
  expected JSON,
  id {id} NOT NULL,
  CONSTRAINT pk_question PRIMARY KEY (id),
  CONSTRAINT uq_question_study_id UNIQUE (study_id, ordinal),
  CONSTRAINT fk_question_study_id FOREIGN KEY(study_id) REFERENCES study (id)
);

CREATE TABLE study_role (
  owner_id INTEGER NOT NULL,
  study_id INTEGER NOT NULL,
  role VARCHAR(16) NOT NULL,
  id {id} NOT NULL,
  CONSTRAINT pk_study_role PRIMARY KEY (id),
  CONSTRAINT uq_study_role_owner_id UNIQUE (owner_id, study_id),
  CONSTRAINT fk_study_role_owner_id FOREIGN KEY(owner_id) REFERENCES owner (id),
  CONSTRAINT fk_study_role_study_id FOREIGN KEY(study_id) REFERENCES study (id)
);

CREATE TABLE decision (
  question_id INTEGER NOT NULL,
  decided_by VARCHAR(64) NOT NULL,
  value JSON NOT NULL,
  comment TEXT NOT NULL,
  at {float} NOT NULL,
  id {id} NOT NULL,
  CONSTRAINT pk_decision PRIMARY KEY (id),
  CONSTRAINT fk_decision_question_id FOREIGN KEY(question_id) REFERENCES question (id)
);

CREATE INDEX ix_decision_question ON decision (question_id);

CREATE TABLE login (
  token_hash VARCHAR(64) NOT NULL,
  owner_id INTEGER,
  annotator_id INTEGER,
  created {float} NOT NULL,
  expires {float} NOT NULL,
  id {id} NOT NULL,
  CONSTRAINT pk_login PRIMARY KEY (id),
  CONSTRAINT uq_login_token_hash UNIQUE (token_hash),
  CONSTRAINT fk_login_owner_id FOREIGN KEY(owner_id) REFERENCES owner (id),
  CONSTRAINT fk_login_annotator_id FOREIGN KEY(annotator_id) REFERENCES annotator (id)
);

CREATE TABLE slot (
  study_id INTEGER NOT NULL,
  question_id INTEGER NOT NULL,
  kind VARCHAR(16) NOT NULL,
  copy INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  phase INTEGER NOT NULL,
  state VARCHAR(8) NOT NULL,
  annotator_id INTEGER,
  lease_until {float},
  shown {float},
  token VARCHAR(32),
  shuffle JSON,
  id {id} NOT NULL,
  CONSTRAINT pk_slot PRIMARY KEY (id),
  CONSTRAINT uq_slot_question_id UNIQUE (question_id, copy),
  CONSTRAINT fk_slot_study_id FOREIGN KEY(study_id) REFERENCES study (id),
  CONSTRAINT fk_slot_question_id FOREIGN KEY(question_id) REFERENCES question (id),
  CONSTRAINT fk_slot_annotator_id FOREIGN KEY(annotator_id) REFERENCES annotator (id),
  CONSTRAINT uq_slot_token UNIQUE (token)
);

CREATE INDEX ix_slot_holder ON slot (annotator_id, state);

CREATE UNIQUE INDEX ix_slot_one_per_annotator ON slot (question_id, annotator_id);

CREATE INDEX ix_slot_queue ON slot (study_id, state, rank);

CREATE TABLE answer (
  study_id INTEGER NOT NULL,
  question_id INTEGER NOT NULL,
  slot_id INTEGER NOT NULL,
  annotator_id INTEGER NOT NULL,
  turn INTEGER NOT NULL,
  kind VARCHAR(8) NOT NULL,
  key VARCHAR(64) NOT NULL,
  value JSON,
  comment TEXT NOT NULL,
  seconds {float},
  at {float} NOT NULL,
  digest VARCHAR(64) NOT NULL,
  salt VARCHAR(32),
  content VARCHAR(64) NOT NULL,
  erased {float},
  id {id} NOT NULL,
  CONSTRAINT pk_answer PRIMARY KEY (id),
  CONSTRAINT uq_answer_annotator_id UNIQUE (annotator_id, key),
  CONSTRAINT fk_answer_study_id FOREIGN KEY(study_id) REFERENCES study (id),
  CONSTRAINT fk_answer_question_id FOREIGN KEY(question_id) REFERENCES question (id),
  CONSTRAINT fk_answer_slot_id FOREIGN KEY(slot_id) REFERENCES slot (id),
  CONSTRAINT fk_answer_annotator_id FOREIGN KEY(annotator_id) REFERENCES annotator (id)
);

CREATE INDEX ix_answer_question ON answer (question_id);

CREATE INDEX ix_answer_slot ON answer (slot_id);

CREATE UNIQUE INDEX ix_answer_turn ON answer (annotator_id, turn);
