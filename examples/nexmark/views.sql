-- q0: everything as it is
CREATE MATERIALIZED VIEW q0 AS
SELECT auction, bidder, price, date_time, extra FROM bid;

-- q1: prices in another currency
CREATE MATERIALIZED VIEW q1 AS
SELECT auction, bidder, 0.908 * price AS price, date_time, extra FROM bid;

-- q2: bids for some auctions
CREATE MATERIALIZED VIEW q2 AS
SELECT auction, price FROM bid WHERE mod(auction, 123) = 0;

-- q3: who sells in some states
CREATE MATERIALIZED VIEW q3 AS
SELECT p.name, p.city, p.state, a.id
FROM auction a JOIN person p ON a.seller = p.id
WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA');

-- q4: the average price of a category
CREATE MATERIALIZED VIEW q4 AS
SELECT category, avg(final) AS average
FROM (
  SELECT max(b.price) AS final, a.category
  FROM auction a JOIN bid b ON a.id = b.auction
  WHERE b.date_time BETWEEN a.date_time AND a.expires
  GROUP BY a.id, a.category) winners
GROUP BY category;

-- q5: the auctions with the most bids in ten seconds, looked at every two seconds
CREATE MATERIALIZED VIEW q5 AS
WITH counts AS (
  SELECT auction, window_start, count(*) AS bids
  FROM HOP(bid, date_time, INTERVAL '2 seconds', INTERVAL '10 seconds') h
  GROUP BY auction, window_start)
SELECT c.auction, c.bids, c.window_start
FROM counts c
JOIN (SELECT max(bids) AS most, window_start FROM counts GROUP BY window_start) m
  ON c.window_start = m.window_start AND c.bids >= m.most;

-- q6: the average price of a seller's last ten auctions
CREATE MATERIALIZED VIEW q6 AS
SELECT seller, id, round(avg(final) OVER (PARTITION BY seller ORDER BY expires, id ROWS 10 PRECEDING), 6) AS average
FROM (
  SELECT a.id, a.seller, a.expires, max(b.price) AS final
  FROM auction a JOIN bid b ON a.id = b.auction
  WHERE b.date_time BETWEEN a.date_time AND a.expires
  GROUP BY a.id, a.seller, a.expires) winners;

-- q7: the highest bids of each ten seconds
CREATE MATERIALIZED VIEW q7 AS
SELECT b.auction, b.price, b.bidder, b.date_time, b.extra
FROM bid b
JOIN (
  SELECT max(price) AS most, window_start, window_end
  FROM TUMBLE(bid, date_time, INTERVAL '10 seconds') t
  GROUP BY window_start, window_end) m
  ON b.price = m.most AND b.date_time >= m.window_start AND b.date_time < m.window_end;

-- q8: people who sell something soon after they came
CREATE MATERIALIZED VIEW q8 AS
SELECT p.id, p.name, p.window_start
FROM (
  SELECT id, name, window_start, window_end
  FROM TUMBLE(person, date_time, INTERVAL '10 seconds') t
  GROUP BY id, name, window_start, window_end) p
JOIN (
  SELECT seller, window_start, window_end
  FROM TUMBLE(auction, date_time, INTERVAL '10 seconds') t
  GROUP BY seller, window_start, window_end) a
  ON p.id = a.seller AND p.window_start = a.window_start AND p.window_end = a.window_end;

-- q9: the winning bid of each auction
CREATE MATERIALIZED VIEW q9 AS
SELECT id, item_name, seller, category, bidder, price, bid_time
FROM (
  SELECT a.id, a.item_name, a.seller, a.category, b.bidder, b.price, b.date_time AS bid_time,
    row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time, b.bidder) AS place
  FROM auction a JOIN bid b ON a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires) ranked
WHERE place <= 1;

-- q10: what a log of the bids would be filed under
CREATE MATERIALIZED VIEW q10 AS
SELECT auction, bidder, price, date_time, extra,
  to_char(date_time, 'YYYY-MM-DD') AS day, to_char(date_time, 'HH24:MI') AS minute
FROM bid;

-- q11: sessions of bidders: a bid more than two seconds after the last one begins a new session
CREATE MATERIALIZED VIEW q11 AS
WITH begun AS (
  SELECT bidder, date_time,
    CASE WHEN date_time - lag(date_time) OVER w <= INTERVAL '2 seconds' THEN 0 ELSE 1 END AS is_first
  FROM bid WINDOW w AS (PARTITION BY bidder ORDER BY date_time)),
sessions AS (
  SELECT bidder, date_time, sum(is_first) OVER (PARTITION BY bidder ORDER BY date_time) AS session FROM begun)
SELECT bidder, count(*) AS bids, min(date_time) AS began, max(date_time) AS ended
FROM sessions GROUP BY bidder, session;

-- q12: bids of each bidder in ten seconds (by the bid's own time)
CREATE MATERIALIZED VIEW q12 AS
SELECT bidder, count(*) AS bids, window_start, window_end
FROM TUMBLE(bid, date_time, INTERVAL '10 seconds') t
GROUP BY bidder, window_start, window_end;

-- q13: bids with a value from another table
CREATE MATERIALIZED VIEW q13 AS
SELECT b.auction, b.bidder, b.price, b.date_time, s.value
FROM bid b JOIN side_input s ON mod(b.auction, 100) = s.key;

-- q14: computed columns, filtered
CREATE MATERIALIZED VIEW q14 AS
SELECT auction, bidder, 0.908 * price AS price,
  CASE WHEN extract(hour FROM date_time) BETWEEN 8 AND 18 THEN 'dayTime'
       WHEN extract(hour FROM date_time) <= 6 OR extract(hour FROM date_time) >= 20 THEN 'nightTime'
       ELSE 'otherTime' END AS bid_time_type,
  date_time, length(extra) - length(replace(extra, 'c', '')) AS c_counts
FROM bid
WHERE 0.908 * price > 1000 AND 0.908 * price < 50000000;

-- q15: bids, bidders and auctions of each day by price
CREATE MATERIALIZED VIEW q15 AS
SELECT to_char(date_time, 'YYYY-MM-DD') AS day,
  count(*) AS total_bids,
  count(*) FILTER (WHERE price < 10000) AS rank1_bids,
  count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
  count(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
  count(DISTINCT bidder) AS total_bidders,
  count(DISTINCT bidder) FILTER (WHERE price < 10000) AS rank1_bidders,
  count(DISTINCT bidder) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bidders,
  count(DISTINCT bidder) FILTER (WHERE price >= 1000000) AS rank3_bidders,
  count(DISTINCT auction) AS total_auctions,
  count(DISTINCT auction) FILTER (WHERE price < 10000) AS rank1_auctions,
  count(DISTINCT auction) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_auctions,
  count(DISTINCT auction) FILTER (WHERE price >= 1000000) AS rank3_auctions
FROM bid GROUP BY to_char(date_time, 'YYYY-MM-DD');

-- q16: the same for each channel
CREATE MATERIALIZED VIEW q16 AS
SELECT channel, to_char(date_time, 'YYYY-MM-DD') AS day, max(to_char(date_time, 'HH24:MI')) AS minute,
  count(*) AS total_bids,
  count(*) FILTER (WHERE price < 10000) AS rank1_bids,
  count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
  count(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
  count(DISTINCT bidder) AS total_bidders,
  count(DISTINCT bidder) FILTER (WHERE price < 10000) AS rank1_bidders,
  count(DISTINCT bidder) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bidders,
  count(DISTINCT bidder) FILTER (WHERE price >= 1000000) AS rank3_bidders,
  count(DISTINCT auction) AS total_auctions
FROM bid GROUP BY channel, to_char(date_time, 'YYYY-MM-DD');

-- q17: what each auction saw in a day
CREATE MATERIALIZED VIEW q17 AS
SELECT auction, to_char(date_time, 'YYYY-MM-DD') AS day,
  count(*) AS total_bids,
  count(*) FILTER (WHERE price < 10000) AS rank1_bids,
  count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
  count(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
  min(price) AS min_price, max(price) AS max_price, avg(price) AS avg_price, sum(price) AS sum_price
FROM bid GROUP BY auction, to_char(date_time, 'YYYY-MM-DD');

-- q18: the last bid of each bidder for an auction
CREATE MATERIALIZED VIEW q18 AS
SELECT auction, bidder, price, channel, url, date_time, extra
FROM (
  SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC, price DESC, extra) AS place
  FROM bid) ranked
WHERE place <= 1;

-- q19: the ten highest bids of each auction
CREATE MATERIALIZED VIEW q19 AS
SELECT *
FROM (
  SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, date_time, bidder, extra) AS place
  FROM bid) ranked
WHERE place <= 10;

-- q20: bids with their auctions
CREATE MATERIALIZED VIEW q20 AS
SELECT b.auction, b.bidder, b.price, b.channel, b.date_time, a.item_name, a.initial_bid, a.reserve, a.expires, a.seller
FROM bid b JOIN auction a ON b.auction = a.id
WHERE a.category = 10;

-- q21: an id for each channel, from its name or from the address
CREATE MATERIALIZED VIEW q21 AS
SELECT auction, bidder, price, channel,
  CASE WHEN lower(channel) = 'apple' THEN '0'
       WHEN lower(channel) = 'google' THEN '1'
       WHEN lower(channel) = 'facebook' THEN '2'
       WHEN lower(channel) = 'baidu' THEN '3'
       ELSE (regexp_match(url, '(&|^)channel_id=([^&]*)'))[2] END AS channel_id
FROM bid
WHERE (regexp_match(url, '(&|^)channel_id=([^&]*)'))[2] IS NOT NULL
   OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu');

-- q22: the folders of an address
CREATE MATERIALIZED VIEW q22 AS
SELECT auction, bidder, price, channel,
  split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2, split_part(url, '/', 6) AS dir3
FROM bid;
