-- The Debian 12 package index; README.md beside this file tells where the rows come from.
CREATE TABLE packages (
  package text PRIMARY KEY,
  version text NOT NULL,
  source text,
  section text,
  priority text,
  installed_kib bigint,
  download_bytes bigint
);
CREATE TABLE depends (
  package text NOT NULL,
  kind text NOT NULL,
  clause integer NOT NULL,
  alternative integer NOT NULL,
  target text NOT NULL,
  op text,
  bound text
);
CREATE TABLE provides (package text NOT NULL, virtual text NOT NULL);

-- What you want to know about: packages whose needs are followed, and libraries whose loss is.
CREATE TABLE chosen (package text PRIMARY KEY);
CREATE TABLE watched (library text PRIMARY KEY);
INSERT INTO chosen VALUES ('gimp'), ('libreoffice'), ('vlc'), ('postgresql'), ('nginx'), ('git'), ('docker.io'),
  ('firefox-esr'), ('python3'), ('openssh-server');
INSERT INTO watched VALUES ('libc6'), ('libssl3'), ('zlib1g'), ('libgtk-3-0'), ('libqt5core5a'), ('libcurl4'),
  ('libxml2'), ('libsqlite3-0'), ('libpng16-16'), ('libglib2.0-0');
