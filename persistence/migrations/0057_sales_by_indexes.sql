-- What was sold in a period is summed in indexes alone: cards lie where they were made, and those that were decided in a
-- period lie apart.
drop index cards_won_then, cards_lost_then, card_products_card;
create index cards_won_then on cards (company_id, won_at)
    include (id, board_id, assigned_user_id, origin_id, products_total_e4) where won_at is not null;
create index cards_lost_then on cards (company_id, lost_at)
    include (id, board_id, assigned_user_id, origin_id, products_total_e4) where lost_at is not null;
create index card_products_card on card_products (company_id, card_id, id) include (product_id, total_price);
