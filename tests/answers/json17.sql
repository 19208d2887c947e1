-- One case a line; make_json.py asks PostgreSQL 17 for the answers.

SELECT jsonb_typeof('1')
