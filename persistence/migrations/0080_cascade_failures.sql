-- A deleted record whose steps fail has its turn after the others of its company.
alter table cascades add column failures integer not null default 0;
