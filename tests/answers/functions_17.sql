-- Functions that PostgreSQL has since 16 or 17.
select interval '1' day * 2
