//! The engine, called as the handlers call it.

use std::sync::Arc;

use hotline_actors::services::Recipient;
use hotline_actors::tickets::{Author, Close, Open, Send, Transfer};
use hotline_actors::{Directory, Engine, EngineOptions};
use hotline_persistence::{Durability, Store, pool};

use crate::case::{CONTACTS, Kind};
use crate::slot::Slot;
use crate::support::{self, Company, Postgres};

/// The name of this side.
pub const NAME: &str = "journal";

/// The text of every message.
pub const TEXT: &str = "Good morning! Your order has left our warehouse and arrives tomorrow.";

/// The wrap-up note of every closed ticket.
pub const NOTE: &str = "Told them when.";

/// The engine over a store of its own.
pub struct Live {
    pub store: Arc<Store>,
    engine: Engine,
    pub company: Company,
}

impl Live {
    pub async fn start(postgres: &Postgres) -> Self {
        let database = postgres.database(NAME).await;
        let db = pool::connect(database.clone());
        pool::migrate(&db).await.expect("migrate");
        let company = Company::create(&db, *CONTACTS).await;
        db.close().await;
        let store = support::open(postgres.store_options(database, Durability::Journal)).await;
        let directory = Directory::load(&store.housekeeping, &store.keys, hotline_actors::directory::RELOAD_EVERY)
            .await
            .expect("load the directory");
        // The default permits sends to numbers that have never written.
        let options = EngineOptions::default();
        let engine = Engine::new(store.clone(), directory, options);
        Self { store, engine, company }
    }

    pub async fn stop(&self) {
        support::drain(&self.store.log).await;
        self.engine.stop();
        self.store.close().await.expect("close the store");
    }

    /// Carries out one command.
    pub async fn ask(&self, slot: &mut Slot, kind: Kind) {
        let Self { engine, company, .. } = self;
        let author = Author::API;
        match kind {
            Kind::Open => {
                let open = Open {
                    company: company.id,
                    channel: company.channel,
                    contact: slot.contact.clone(),
                    reachable: false,
                    queue: None,
                    user: None,
                    author,
                };
                slot.ticket = Some(engine.tickets.open(open, None).await.expect("the ticket is opened").row.id);
            }
            Kind::Send => {
                let send = Send { reopen: true, ..Send::text(TEXT, author) };
                let recipient = Recipient::Contact(company.channel, slot.contact.id);
                let target = engine.sending.resolve(company.id, recipient).await.expect("the channel");
                let sent = engine.sending.send(&target, send).await;
                assert_eq!(sent.expect("the message is taken").ticket_id, slot.ticket());
            }
            Kind::Transfer => {
                let queue = Some(company.queues[slot.next % 2]);
                let transfer = Transfer { queue, user: Some(Some(company.user)), author };
                engine.tickets.ask(company.id, slot.ticket(), transfer).await.expect("the ticket is transferred");
            }
            Kind::Close => {
                let wrapup_type = Some(company.wrapup_type);
                let close = Close { wrapup_type, wrapup_note: Some(NOTE.to_owned()), author };
                engine.tickets.ask(company.id, slot.ticket(), close).await.expect("the ticket is closed");
            }
        }
    }
}
