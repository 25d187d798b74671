-- Who wants no campaigns, and the words that say so.
alter table contacts add column marketing_opt_out boolean not null default false;

-- Folded as they are compared: lower case, without accents.
alter table companies add column stop_words text[] not null
    default '{stop,stopall,unsubscribe,sair,parar,pare,cancelar,descadastrar,baja}';
