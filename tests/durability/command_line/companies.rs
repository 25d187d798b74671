//! `hotline company`.

use super::{json, wait_until_seen};
use crate::process::Process;
use crate::support::Api;
use crate::support::template::prepared_folder;

#[actix_web::test]
async fn a_company_is_changed_on_a_stopped_service_and_on_a_running_one() {
    let folder = prepared_folder();
    let company = json(folder.path(), &["company", "create", "Acme"]);
    let id = company["id"].to_string();
    let update = |options: &[&str]| json(folder.path(), &[&["company", "update", &id], options].concat());
    let changed = update(&["--name", "Acme Ltd", "--rate-per-minute=0", "--time-zone=America/Sao_Paulo"]);
    assert_eq!(changed["id"], company["id"]);
    assert_eq!((&changed["name"], &changed["ratePerMinute"]), (&"Acme Ltd".into(), &0.into()));
    assert_eq!(changed["timeZone"], "America/Sao_Paulo");
    assert_eq!(changed["stopWords"].as_array().map(Vec::len), Some(9), "{changed}");
    assert!(changed["active"] == true && changed["apiEnabled"] == true, "{changed}");
    let token = json(folder.path(), &["token", "create", "crm", "--company", &id, "--all"]);

    let process = Process::serve(folder.path());
    let api = Api::new(process.address, token["key"].as_str().expect("key"));
    let responds_with = |status: u16| {
        let api = api.clone();
        move || {
            let api = api.clone();
            async move { api.get("/channels").await.status == status }
        }
    };
    assert!(responds_with(200)().await);
    let changed = update(&["--active=false"]);
    assert_eq!((&changed["active"], &changed["name"]), (&false.into(), &"Acme Ltd".into()));
    wait_until_seen("the company is not served", responds_with(403)).await;
    api.get("/channels").await.error(403, "ERR_API_COMPANY_INACTIVE");
    update(&["--active=true", "--api-enabled=false"]);
    wait_until_seen("the API is not in its plan", || async {
        api.get("/channels").await.body["error"]["code"] == "ERR_API_NOT_ENABLED"
    })
    .await;
    api.get("/channels").await.error(403, "ERR_API_NOT_ENABLED");
    update(&["--api-enabled=true"]);
    wait_until_seen("the company is served again", responds_with(200)).await;
    let changed = update(&["--stop-words= Basta ,Cancelar Inscrição,,basta"]);
    assert_eq!(changed["stopWords"], serde_json::json!(["basta", "cancelar inscricao"]));
    let listed = json(folder.path(), &["company", "list"]);
    assert_eq!(listed["companies"][0]["stopWords"], changed["stopWords"]);
    assert_eq!(update(&["--stop-words="])["stopWords"], serde_json::json!([]));
    assert_eq!(listed["companies"][0]["timeZone"], "America/Sao_Paulo");
    process.kill();
}
