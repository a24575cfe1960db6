-- A database of tens of thousands of rows: built, indexed, joined, grouped, changed and vacuumed.
PRAGMA threads = 2;
PRAGMA cache_size = 2000;
CREATE TABLE item(id INTEGER PRIMARY KEY, kind TEXT, weight REAL, note TEXT, data BLOB);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
INSERT INTO item SELECT i, 'kind' || (i * 7919 % 101), (i * 104729 % 100003) / 7.0,
  printf('%.*c note %d of %s', i % 60, 'x', i, hex(i * 31)), zeroblob(i % 200) FROM n;
CREATE INDEX by_kind ON item(kind, weight);
CREATE INDEX by_note ON item(note);
SELECT kind, count(*), round(sum(weight), 3), max(note) FROM item GROUP BY kind ORDER BY 3 DESC;
SELECT id, note FROM item WHERE note LIKE '%note 77%' ORDER BY weight LIMIT 50;
SELECT a.kind, count(*) FROM item a JOIN item b ON b.id = a.id * 3 % 60000 WHERE a.weight < b.weight GROUP BY 1 ORDER BY 1;
SELECT kind, id, rank() OVER (PARTITION BY kind ORDER BY weight DESC) AS r FROM item WHERE id % 500 = 0 ORDER BY kind, r;
SELECT sum(length(text)) FROM (SELECT group_concat(note, ';') AS text FROM item GROUP BY kind);
SELECT json_group_array(json_object('id', id, 'w', round(weight, 2))) FROM item WHERE id < 400;
CREATE TABLE document(id INTEGER PRIMARY KEY, body TEXT);
INSERT INTO document SELECT id, json_array(kind, note, weight, json_object('n', id)) FROM item WHERE id % 3 = 0;
SELECT json_extract(body, '$[0]'), sum(json_extract(body, '$[3].n')) FROM document GROUP BY 1 ORDER BY 2;
UPDATE item SET note = note || ' again', data = zeroblob(id % 900) WHERE id % 4 = 1;
DELETE FROM item WHERE id % 5 = 2;
VACUUM;
PRAGMA integrity_check;
SELECT count(*), sum(length(data)), sum(length(note)) FROM item;
