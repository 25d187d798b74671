//! The route tables: all paths with their handlers, and the operations that the API documents describe.

use actix_web::middleware::from_fn;
use actix_web::web::{self, Data, ServiceConfig};
use hotline_persistence::tables::businesses::Business;
use hotline_persistence::tables::card_origins::CardOrigin;
use hotline_persistence::tables::card_statuses::CardStatus;
use hotline_persistence::tables::contact_lists::ContactList;
use hotline_persistence::tables::custom_fields::CustomField;
use hotline_persistence::tables::global_variables::GlobalVariable;
use hotline_persistence::tables::product_categories::ProductCategory;
use hotline_persistence::tables::products::Product;
use hotline_persistence::tables::queues::Queue;
use hotline_persistence::tables::quick_messages::QuickMessage;
use hotline_persistence::tables::tags::Tag;
use hotline_persistence::tables::users::User;
use hotline_persistence::tables::wrapup_categories::WrapupCategory;
use hotline_persistence::tables::wrapup_types::WrapupType;
use serde_json::Value;

use crate::api::plain::{self, Plain};
use crate::api::{
    boards, campaigns, cards, channels, contact_lists, contacts, custom_fields, events, health, media, messages,
    profiles, queues, reports, schedules, templates, tickets, users, webchat, webhooks, wrapup_categories,
    wrapup_types,
};
use crate::app::App;
use crate::hooks::{self, Hooks};
use crate::mail::Mailer;
use crate::openapi::{self, Documents, Operation, PathEntry, Table};
use crate::panel::{self, Panel, pages};
use crate::visitors::{self, Demo, VisitorLimits};
use crate::web::Input;
use crate::web::admission::auth::admit;
use crate::web::admission::modules::{API, PANEL_API};
use crate::web::admission::request_id;
use crate::web::request::bounds::JSON_BYTES_MAX;
use crate::web::response::methods::{no_such_route, read_only};
use crate::web::response::schema::Schemas;
use crate::web::state::WebState;

/// Paths that are served but have no operation in an API document: the documents themselves, and files.
const UNDOCUMENTED_PATHS: [&str; 8] = [
    openapi::PATH,
    openapi::PANEL_PATH,
    "/docs",
    "/docs/{file}",
    media::PATH,
    pages::PATHS[0],
    pages::PATHS[1],
    pages::PATHS[2],
];

/// The shared state of all routes. Cheap to clone.
#[derive(Clone)]
pub struct Handles {
    /// The handlers' state.
    pub app: Data<App>,
    /// The state of event streams.
    pub shared_streams: Data<events::SharedStreams>,
    /// The cached JSON of tickets.
    pub rendered_tickets: Data<tickets::RenderedTickets>,
    /// The state of the hooks.
    pub hooks: Data<Hooks>,
    /// The limits of visitors.
    pub visitor_limits: Data<VisitorLimits>,
    /// The state of the panel.
    pub panel: Data<Panel>,
    /// The demo's page, if this is a demo.
    pub demo: Data<Demo>,
    /// The API documents.
    pub documents: Data<Documents>,
    /// The state of the middleware.
    pub web_state: WebState,
}

/// Registers all routes.
pub fn configure(handles: Handles) -> impl FnOnce(&mut ServiceConfig) {
    move |services| {
        let Handles {
            app,
            shared_streams,
            rendered_tickets,
            hooks,
            visitor_limits,
            panel: panel_data,
            demo,
            documents,
            web_state,
        } = handles;
        web_state.add(services);
        services
            .app_data(app)
            .app_data(shared_streams)
            .app_data(rendered_tickets)
            .app_data(hooks)
            .app_data(visitor_limits)
            .app_data(panel_data)
            .app_data(demo)
            .app_data(documents)
            // The most frequent routes come first: the router compares them one after the other.
            .configure(register_api)
            .configure(register_health)
            .service(read_only(web::resource(openapi::PATH).get(openapi::show)))
            .service(read_only(web::resource(openapi::PANEL_PATH).get(openapi::show_panel)))
            .configure(register_panel_api)
            .configure(pages::configure)
            .service(read_only(web::resource("/docs").get(openapi::redirect_to_docs)))
            .service(read_only(web::resource("/docs/{file:.*}").get(openapi::docs)))
            .service(read_only(web::resource(media::PATH).get(media::show)))
            .configure(hooks::configure)
            // Without a token every path responds with 401, so routes cannot be probed.
            .service(web::scope(API).wrap(from_fn(admit)).default_service(web::to(no_such_route)))
            .service(visitors::scope())
            .configure(visitors::configure_demo)
            .default_service(web::to(no_such_route));
    }
}

/// Adds the endpoints of the API, each with the id and the summary of its operation.
#[rustfmt::skip] // One line per endpoint.
fn add_endpoints(table: &mut Table<'_>) {
    table
        .at("/contacts").get("listContacts", contacts::list, "List contacts").post("createContact", contacts::create, "Create a contact")
        // Before the path with an id, which would match it.
        .at("/contacts/import").post("importContacts", contacts::import, "Create or update up to 1000 contacts at once")
        .at("/contacts/{contactId}")
            .get("getContact", contacts::show, "Get a contact").put("updateContact", contacts::update, "Update a contact").delete("deleteContact", contacts::remove, "Delete a contact")
        .at("/contacts/{contactId}/merge").post("mergeContacts", contacts::merge, "Merge a contact into another")
        .at("/contacts/{contactId}/tags/{tagId}").put("addContactTag", contacts::add_tag, "Add a tag to a contact").delete("removeContactTag", contacts::remove_tag, "Remove a tag from a contact")
        .at("/tickets").get("listTickets", tickets::list, "List tickets").post("openTicket", tickets::create, "Open a ticket")
        .at("/tickets/{ticketId}").get("getTicket", tickets::show, "Get a ticket")
        .at("/tickets/{ticketId}/transfer").post("transferTicket", tickets::transfer, "Transfer a ticket")
        .at("/tickets/{ticketId}/close").post("closeTicket", tickets::close, "Close a ticket")
        .at("/tickets/{ticketId}/reopen").post("reopenTicket", tickets::reopen, "Reopen a ticket")
        .at("/tickets/{ticketId}/wrapup").put("setTicketWrapup", tickets::set_wrapup, "Set the wrap-up of a ticket")
        .at("/tickets/{ticketId}/read").post("markTicketRead", tickets::mark_read, "Mark a ticket as read")
        .at("/tickets/{ticketId}/merge").post("mergeTickets", tickets::merge, "Merge a ticket into another")
        .at("/tickets/{ticketId}/messages").get("listTicketMessages", tickets::list_messages, "List the messages of a ticket")
        .at("/tickets/{ticketId}/events").get("listTicketEvents", tickets::list_events, "List the events of a ticket")
        .at("/tickets/{ticketId}/notes").post("addTicketNote", tickets::add_note, "Add a note to a ticket")
        .at("/messages").get("listMessages", messages::list, "List messages").post("sendMessage", messages::send, "Send a message")
        .at("/messages/jobs/{jobId}").get("getMessageJob", messages::show_job, "Get a message job")
        .at("/messages/{messageId}").get("getMessage", messages::show, "Get a message")
        .at("/messages/{messageId}/reaction").put("reactToMessage", messages::react, "React to a message").delete("withdrawReaction", messages::withdraw_reaction, "Withdraw a reaction")
        .at("/channels").get("listChannels", channels::list, "List channels")
        .at("/channels/{channelId}").get("getChannel", channels::show, "Get a channel")
        .at("/channels/{channelId}/templates").get("listChannelTemplates", templates::list, "List the approved templates of a channel")
        .at("/webchat/sessions").post("openSession", webchat::open, "Open a visitor session")
        .at("/webchat/sessions/{sessionId}").get("getSession", webchat::show, "Get a visitor session")
        .at("/webchat/sessions/{sessionId}/messages")
            .get("listSessionMessages", webchat::list_messages, "List the messages of a visitor session").post("sendSessionMessage", webchat::send_message, "Send a message as a visitor")
        .at("/webchat/sessions/{sessionId}/end").post("endSession", webchat::end, "End a visitor session")
        .plain::<Tag>("/tags", "tagId", "tags")
        .at("/queues").get("listQueues", plain::list::<Queue>, "List queues").post("createQueue", plain::create::<Queue>, "Create a queue")
        .at("/queues/{queueId}").get("getQueue", plain::show::<Queue>, "Get a queue").put("updateQueue", plain::update::<Queue>, "Update a queue").delete("deleteQueue", queues::remove, "Delete a queue")
        .at("/queues/{queueId}/users").get("listQueueUsers", queues::list_users, "List the agents of a queue")
        .at("/queues/{queueId}/users/{userId}")
            .put("addQueueUser", queues::add_user, "Add an agent to a queue").delete("removeQueueUser", queues::remove_user, "Remove an agent from a queue")
        .at("/queues/{queueId}/wrapup-types").get("listQueueWrapupTypes", queues::list_wrapup_types, "List the wrap-up types of a queue")
        .at("/wrapup-types").get("listWrapupTypes", plain::list::<WrapupType>, "List wrap-up types").post("createWrapupType", wrapup_types::create, "Create a wrap-up type")
        .at("/wrapup-types/{wrapupTypeId}")
            .get("getWrapupType", plain::show::<WrapupType>, "Get a wrap-up type").put("updateWrapupType", wrapup_types::update, "Update a wrap-up type").delete("deleteWrapupType", wrapup_types::remove, "Delete a wrap-up type")
        .at("/wrapup-categories")
            .get("listWrapupCategories", plain::list::<WrapupCategory>, "List wrap-up categories").post("createWrapupCategory", plain::create::<WrapupCategory>, "Create a wrap-up category")
        .at("/wrapup-categories/{categoryId}")
            .put("updateWrapupCategory", plain::update::<WrapupCategory>, "Update a wrap-up category").delete("deleteWrapupCategory", wrapup_categories::remove, "Delete a wrap-up category")
        .at("/users").get("listUsers", plain::list::<User>, "List users").post("createUser", users::create, "Create a user")
        // Before the path with an id, which would match it.
        .at("/users/metrics").get("listUserMetrics", users::list_metrics, "List the conversation metrics of users")
        .at("/users/{userId}")
            .get("getUser", plain::show::<User>, "Get a user").put("updateUser", users::update, "Update a user").delete("removeUser", users::remove, "Remove a user from the company")
        .at("/profiles").get("listProfiles", profiles::list, "List permission profiles")
        .at("/profiles/{profileId}").get("getProfile", profiles::show, "Get a permission profile")
        .at("/reports/tickets").get("reportTickets", reports::report_tickets, "Report on tickets")
        .at("/reports/messages").get("reportMessages", reports::report_messages, "Report on messages")
        .at("/reports/wrapups").get("reportWrapups", reports::report_wrapups, "Report on wrap-ups")
        .at("/reports/sales").get("reportSales", reports::report_sales, "Report on sales")
        .at("/dashboards/service").get("getServiceDashboard", reports::show_service_dashboard, "Get the service dashboard")
        .at("/dashboards/sales").get("getSalesDashboard", reports::show_sales_dashboard, "Get the sales dashboard")
        .at("/campaigns").get("listCampaigns", campaigns::list, "List campaigns").post("createCampaign", campaigns::create, "Create a campaign")
        .at("/campaigns/{campaignId}")
            .get("getCampaign", campaigns::show, "Get a campaign").put("updateCampaign", campaigns::update, "Update a campaign").delete("deleteCampaign", campaigns::remove, "Delete a campaign")
        .at("/campaigns/{campaignId}/start").post("startCampaign", campaigns::start, "Start a campaign now")
        .at("/campaigns/{campaignId}/pause").post("pauseCampaign", campaigns::pause, "Pause a campaign")
        .at("/campaigns/{campaignId}/resume").post("resumeCampaign", campaigns::resume, "Resume a campaign")
        .at("/campaigns/{campaignId}/cancel").post("cancelCampaign", campaigns::cancel, "Cancel a campaign")
        .at("/campaigns/{campaignId}/recipients").get("listCampaignRecipients", campaigns::list_recipients, "List the recipients of a campaign")
        .at("/contact-lists").get("listContactLists", plain::list::<ContactList>, "List contact lists").post("createContactList", plain::create::<ContactList>, "Create a contact list")
        .at("/contact-lists/{contactListId}").delete("deleteContactList", contact_lists::remove, "Delete a contact list")
        .at("/contact-lists/{contactListId}/contacts")
            .get("listContactListContacts", contact_lists::list_contacts, "List the contacts of a list").post("addContactListContacts", contact_lists::add_contacts, "Add contacts to a list")
        .at("/contact-lists/{contactListId}/contacts/{contactId}").delete("removeContactListContact", contact_lists::remove_contact, "Remove a contact from a list")
        .at("/schedules").get("listSchedules", schedules::list, "List scheduled messages").post("createSchedule", schedules::create, "Schedule a message")
        .at("/schedules/{scheduleId}")
            .get("getSchedule", schedules::show, "Get a scheduled message").put("updateSchedule", schedules::update, "Update a scheduled message").delete("cancelSchedule", schedules::cancel, "Cancel a scheduled message")
        .at("/webhooks").get("listWebhooks", webhooks::list, "List webhooks").post("createWebhook", webhooks::create, "Create a webhook")
        .at("/webhooks/{webhookId}")
            .get("getWebhook", webhooks::show, "Get a webhook").put("updateWebhook", webhooks::update, "Update a webhook").delete("deleteWebhook", webhooks::remove, "Delete a webhook")
        .at("/webhooks/{webhookId}/rotate-secret").post("rotateWebhookSecret", webhooks::rotate_secret, "Rotate the secret of a webhook")
        .at("/webhooks/{webhookId}/test").post("testWebhook", webhooks::test, "Send a test to a webhook")
        .at("/webhooks/{webhookId}/deliveries").get("listWebhookDeliveries", webhooks::list_deliveries, "List the deliveries of a webhook")
        .at("/webhooks/{webhookId}/replay").post("replayWebhook", webhooks::replay, "Replay events to a webhook")
        .plain::<QuickMessage>("/quick-messages", "quickMessageId", "quick messages")
        .at("/custom-fields").get("listCustomFields", plain::list::<CustomField>, "List custom fields").post("createCustomField", custom_fields::create, "Create a custom field")
        // Before the path with an id, which would match it.
        .at("/custom-fields/order").put("reorderCustomFields", custom_fields::reorder, "Reorder the custom fields of an application")
        .at("/custom-fields/{customFieldId}")
            .get("getCustomField", plain::show::<CustomField>, "Get a custom field").put("updateCustomField", custom_fields::update, "Update a custom field").delete("deleteCustomField", plain::remove::<CustomField>, "Delete a custom field")
        .plain::<GlobalVariable>("/global-variables", "variableId", "global variables")
        .plain::<ProductCategory>("/product-categories", "categoryId", "product categories")
        .plain::<Product>("/products", "productId", "products")
        .at("/crm/boards").get("listBoards", boards::list, "List boards").post("createBoard", boards::create, "Create a board")
        .at("/crm/boards/{boardId}").get("getBoard", boards::show, "Get a board with its stages and first cards").put("updateBoard", boards::update, "Update, archive or unarchive a board").delete("deleteBoard", boards::remove, "Delete an empty board")
        .at("/crm/boards/{boardId}/lists").post("addStage", boards::stages::add, "Add a stage")
        // Before the path with an id, which would match it.
        .at("/crm/boards/{boardId}/lists/order").put("reorderStages", boards::stages::reorder, "Reorder the stages")
        .at("/crm/boards/{boardId}/lists/{listId}").put("updateStage", boards::stages::update, "Update a stage").delete("deleteStage", boards::stages::remove, "Delete an empty stage")
        .at("/crm/boards/{boardId}/cards").get("listBoardCards", cards::list_of_board, "List the cards of a board")
        .at("/crm/boards/{boardId}/indicators").get("getBoardIndicators", cards::show_indicators, "Get the sales indicators of a board")
        .at("/crm/cards").get("listCards", cards::list, "List cards").post("createCard", cards::create, "Create a card")
        .at("/crm/cards/{cardId}").get("getCard", cards::show, "Get a card").put("updateCard", cards::update, "Update a card").delete("deleteCard", cards::remove, "Delete a card")
        .at("/crm/cards/{cardId}/move").post("moveCard", cards::move_to, "Move a card to a stage and position")
        .at("/crm/cards/{cardId}/win").post("winCard", cards::win, "Mark a card as won")
        .at("/crm/cards/{cardId}/lose").post("loseCard", cards::lose, "Mark a card as lost")
        .at("/crm/cards/{cardId}/reopen").post("reopenCard", cards::reopen, "Reopen a won or lost card")
        .at("/crm/cards/{cardId}/products").post("addCardProduct", cards::add_product, "Add a product to a card")
        .at("/crm/cards/{cardId}/products/{cardProductId}")
            .put("updateCardProduct", cards::change_product, "Update a product of a card").delete("removeCardProduct", cards::remove_product, "Remove a product from a card")
        .plain_list::<CardStatus>("/crm/statuses", "statusId", "card statuses")
        .plain_list::<Business>("/crm/businesses", "businessId", "businesses")
        .plain_list::<CardOrigin>("/crm/origins", "originId", "card origins")
        .at("/events").get("listEvents", events::list, "List events")
        .at("/events/stream").get("streamEvents", events::stream, "Stream events");
}

/// The endpoints of the API, with their handlers.
fn endpoint_paths() -> Vec<PathEntry> {
    let mut table = Table::for_serving(noun);
    add_endpoints(&mut table);
    table.finish()
}

/// The endpoints for people at the panel: the API's, and those of the panel within a company.
fn panel_paths() -> Vec<PathEntry> {
    let mut table = Table::for_serving(noun);
    add_endpoints(&mut table);
    panel::company_paths(&mut table);
    table.finish()
}

/// Every path that is served, as the metrics name them.
pub fn paths() -> Vec<String> {
    let mut paths: Vec<String> = UNDOCUMENTED_PATHS.iter().map(|path| (*path).to_owned()).collect();
    paths.extend(operations_outside_api(&mut Schemas::new()).iter().map(Operation::full_path));
    paths.extend(endpoint_paths().iter().map(|entry| format!("{API}{}", entry.path)));
    paths.extend(panel_paths().iter().chain(&panel::handlers()).map(|entry| format!("{PANEL_API}{}", entry.path)));
    paths.dedup();
    paths
}

/// Creates the state of the panel.
pub fn create_panel(mailer: Option<Mailer>, admins_need_second_factor: bool) -> Panel {
    Panel::new(panel_paths().iter().chain(&panel::handlers()), mailer, admins_need_second_factor)
}

/// The operations of every endpoint; the schemas they refer to are added to `schemas`.
pub fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    let mut table = Table::documenting_api(schemas, noun);
    add_endpoints(&mut table);
    table.finish().into_iter().flat_map(|entry| entry.operations).collect()
}

/// The operations outside the API: for visitors, providers and monitoring.
pub fn operations_outside_api(schemas: &mut Schemas) -> Vec<Operation> {
    let mut operations = visitors::operations(schemas);
    operations.extend(hooks::operations(schemas));
    let mut table = Table::outside_api(schemas, "health", |_| "");
    add_health_paths(&mut table);
    operations.extend(table.finish().into_iter().flat_map(|entry| entry.operations));
    operations
}

/// The operations of the panel's API; the schemas they refer to are added to `schemas`.
pub fn panel_operations(schemas: &mut Schemas) -> Vec<Operation> {
    let mut table = Table::documenting_api(schemas, noun);
    add_endpoints(&mut table);
    panel::company_paths(&mut table);
    let company_operations = table.finish().into_iter().flat_map(|entry| entry.operations);
    let mut operations: Vec<Operation> =
        company_operations.map(|operation| Operation { prefix: PANEL_API, ..operation }).collect();
    operations.extend(panel::operations(schemas));
    operations
}

/// The document of the panel's API.
pub fn panel_document() -> Value {
    let mut schemas = Schemas::new();
    let operations = panel_operations(&mut schemas);
    openapi::panel_document(operations, schemas)
}

/// The API document.
pub fn document() -> Value {
    let mut schemas = Schemas::new();
    let mut operations = operations(&mut schemas);
    operations.extend(operations_outside_api(&mut schemas));
    let webhook_operations = webhooks::document::webhook_operations(&mut schemas);
    openapi::document(operations, webhook_operations, schemas)
}

fn add_health_paths(table: &mut Table<'_>) {
    table.at("/health/live").get("getLiveness", health::live, "Check liveness");
    table.at("/health/ready").get("getReadiness", health::ready, "Check readiness");
    table.at("/version").get("getVersion", health::version, "Get the version");
}

fn register_health(services: &mut ServiceConfig) {
    let mut schemas = Schemas::new();
    let mut table = Table::outside_api(&mut schemas, "health", |_| "");
    add_health_paths(&mut table);
    for entry in table.finish() {
        services.service(entry.into_resource());
    }
}

/// Registers the endpoints, each behind its middleware.
fn register_api(services: &mut ServiceConfig) {
    // One scope per noun: the router compares paths one after the other, and a scope lets it skip all paths of another
    // noun at once.
    for (noun, paths) in endpoint_paths().into_iter().fold(Vec::new(), add_to_noun) {
        let scope = web::scope(&format!("{API}{noun}")).default_service(web::to(no_such_route));
        let scope = paths.into_iter().fold(scope, |scope, entry| scope.service(entry.into_resource()));
        // The middleware that is wrapped last runs first: `admit` refuses unknown callers, and only the rest are
        // recorded.
        if panel::has_audited_operations(&noun) {
            services.service(scope.wrap(from_fn(panel::audit_tokens)).wrap(from_fn(admit)));
        } else {
            services.service(scope.wrap(from_fn(admit)));
        }
    }
}

/// Registers the endpoints for people at the panel.
fn register_panel_api(services: &mut ServiceConfig) {
    for (noun, paths) in panel_paths().into_iter().fold(Vec::new(), add_to_noun) {
        let scope = web::scope(&format!("{PANEL_API}{noun}")).wrap(from_fn(panel::admit_in_company));
        let scope = scope.default_service(web::to(no_such_route));
        services.service(paths.into_iter().fold(scope, |scope, entry| scope.service(entry.into_resource())));
    }
    services.configure(panel::configure);
}

/// A noun, and the paths that begin with it.
type NounPaths = (String, Vec<PathEntry>);

fn add_to_noun(mut groups: Vec<NounPaths>, entry: PathEntry) -> Vec<NounPaths> {
    let noun = noun(&entry.path);
    match groups.iter_mut().find(|(group_noun, _)| group_noun == noun) {
        Some((_, paths)) => paths.push(entry),
        None => groups.push((noun.to_owned(), vec![entry])),
    }
    groups
}

/// The maximum body size at a path, for the middleware that reads the body before its handler does.
pub fn body_bytes_max(path: &str) -> usize {
    let path = path.strip_prefix(PANEL_API).or_else(|| path.strip_prefix(API));
    let is_import = path == Some("/contacts/import");
    if is_import { <contacts::Import as Input>::BYTES_MAX } else { JSON_BYTES_MAX }
}

/// Adds groups of endpoints to a table.
trait PlainEndpoints {
    /// The five endpoints of a plain noun; `plural` names its records.
    fn plain<T: Plain>(&mut self, path: &'static str, id_name: &str, plural: &str) -> &mut Self;

    /// The endpoints of a noun whose records can be read only as a list.
    fn plain_list<T: Plain>(&mut self, path: &'static str, id_name: &str, plural: &str) -> &mut Self;
}

impl PlainEndpoints for Table<'_> {
    fn plain<T: Plain>(&mut self, path: &'static str, id_name: &str, plural: &str) -> &mut Self {
        let has_show = true;
        add_plain::<T>(self, path, id_name, plural, has_show)
    }

    fn plain_list<T: Plain>(&mut self, path: &'static str, id_name: &str, plural: &str) -> &mut Self {
        let has_show = false;
        add_plain::<T>(self, path, id_name, plural, has_show)
    }
}

fn add_plain<'t, 's, T: Plain>(
    table: &'t mut Table<'s>,
    path: &'static str,
    id_name: &str,
    plural: &str,
    has_show: bool,
) -> &'t mut Table<'s> {
    let singular = plain::with_article("a", T::NOUN);
    let (name, names) = (type_name_of(T::NOUN), type_name_of(plural));
    let unique = T::UNIQUE.first().map(|unique| format!("; its {} is unique in the company", unique.field()));
    table
        .at(path)
        .get(format!("list{names}"), plain::list::<T>, format!("List {plural}"))
        .describe(format!("Lists the company's {plural}, ordered by id."))
        .post(format!("create{name}"), plain::create::<T>, format!("Create {singular}"))
        .describe(format!("Creates {singular}{}.", unique.unwrap_or_default()))
        .at(format!("{path}/{{{id_name}}}"));
    if has_show {
        table
            .get(format!("get{name}"), plain::show::<T>, format!("Get {singular}"))
            .describe(format!("Returns {singular}."));
    }
    table
        .put(format!("update{name}"), plain::update::<T>, format!("Update {singular}"))
        .describe("Updates the given fields.".to_owned())
        .delete(format!("delete{name}"), plain::remove::<T>, format!("Delete {singular}"))
        .describe(format!("Deletes {singular}."))
}

/// The first segment of a path, with its leading slash.
fn noun(path: &str) -> &str {
    path.get(1..).and_then(|rest| rest.find('/')).map_or(path, |end| &path[..=end])
}

/// Converts words to a type name: `wrap-up category` becomes `WrapupCategory`.
fn type_name_of(words: &str) -> String {
    let word = |word: &str| {
        let (first, rest) = word.split_at_checked(1).unwrap_or((word, ""));
        format!("{}{}", first.to_uppercase(), rest.replace('-', ""))
    };
    words.split(' ').map(word).collect()
}

/// The middleware around every route, which assigns the request's id.
pub use request_id::assign_request_id;
