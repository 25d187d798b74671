//! An S3 bucket in memory, on a socket of its own, with the operations that the service uses.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::http::StatusCode;
use actix_web::web::{self, Bytes, Data, PayloadConfig};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer};
use parking_lot::Mutex;

/// The name of the bucket.
pub const NAME: &str = "files";

/// The largest body that an S3 client sends in one request.
const REQUEST_BYTES_MAX: usize = 8 * 1024 * 1024;

#[derive(Default)]
struct Contents {
    objects: BTreeMap<String, Vec<u8>>,
    /// The parts of unfinished uploads, by the upload's id and the part's number.
    uploads: BTreeMap<String, BTreeMap<u32, Vec<u8>>>,
    /// How many parts all uploads have had together.
    parts: usize,
    /// Whether everything is answered with `503`.
    is_unavailable: bool,
}

pub struct Bucket {
    pub address: SocketAddr,
    contents: Arc<Mutex<Contents>>,
    server: ServerHandle,
}

impl Bucket {
    pub async fn start() -> Self {
        let contents: Arc<Mutex<Contents>> = Arc::default();
        let data = Data::from(contents.clone());
        let server = HttpServer::new(move || {
            App::new()
                .app_data(data.clone())
                .app_data(PayloadConfig::new(REQUEST_BYTES_MAX))
                .default_service(web::to(answer))
        });
        // A real bucket waits longer for a request than the framework's five seconds, and does not close an idle
        // connection before its client does.
        let server = server.client_request_timeout(Duration::ZERO).keep_alive(Duration::from_secs(3600));
        let server = server.workers(1).disable_signals().bind("127.0.0.1:0").expect("a port");
        let address = server.addrs()[0];
        let server = server.run();
        let handle = server.handle();
        actix_web::rt::spawn(server);
        Self { address, contents, server: handle }
    }

    /// The environment variables with which a process finds the bucket.
    pub fn variables(&self) -> [(&'static str, String); 5] {
        [
            ("AWS_ENDPOINT", format!("http://{}", self.address)),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_REGION", "eu-test-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", "key".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
        ]
    }

    /// The key of each object, and its size in bytes.
    pub fn objects(&self) -> Vec<(String, usize)> {
        self.contents.lock().objects.iter().map(|(key, object)| (key.clone(), object.len())).collect()
    }

    pub fn parts(&self) -> usize {
        self.contents.lock().parts
    }

    pub fn set_unavailable(&self, is_unavailable: bool) {
        self.contents.lock().is_unavailable = is_unavailable;
    }

    pub async fn stop(self) {
        self.server.stop(false).await;
    }
}

async fn answer(request: HttpRequest, contents: Data<Mutex<Contents>>, body: Bytes) -> HttpResponse {
    let mut contents = contents.lock();
    if contents.is_unavailable {
        return HttpResponse::ServiceUnavailable().finish();
    }
    let authorization =
        request.headers().get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !authorization.starts_with("AWS4-HMAC-SHA256 Credential=key/") {
        return HttpResponse::Forbidden().finish();
    }
    let query: BTreeMap<String, String> =
        url::form_urlencoded::parse(request.query_string().as_bytes()).into_owned().collect();
    let path = request.path().trim_start_matches('/');
    let key = path.strip_prefix(NAME).unwrap_or_default().trim_start_matches('/').to_owned();
    let upload = query.get("uploadId");
    match (request.method().as_str(), upload) {
        ("POST", None) if query.contains_key("uploads") => {
            let id = format!("upload-{}", contents.uploads.len());
            contents.uploads.insert(id.clone(), BTreeMap::new());
            xml(&format!("<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"))
        }
        ("PUT", Some(id)) => {
            let number = query["partNumber"].parse().expect("a number");
            contents.uploads.get_mut(id).expect("an upload").insert(number, body.to_vec());
            contents.parts += 1;
            HttpResponse::Ok().insert_header(("etag", format!("\"{number}\""))).finish()
        }
        ("POST", Some(id)) => {
            let parts = contents.uploads.remove(id).expect("an upload");
            contents.objects.insert(key, parts.into_values().flatten().collect());
            xml("<CompleteMultipartUploadResult><ETag>\"whole\"</ETag></CompleteMultipartUploadResult>")
        }
        ("DELETE", Some(id)) => {
            contents.uploads.remove(id);
            HttpResponse::NoContent().finish()
        }
        ("PUT", None) => {
            contents.objects.insert(key, body.to_vec());
            HttpResponse::Ok().insert_header(("etag", "\"whole\"")).finish()
        }
        ("POST", None) if query.contains_key("delete") => {
            let listed = String::from_utf8(body.to_vec()).expect("text");
            let keys = listed.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next());
            let keys: Vec<String> = keys.map(str::to_owned).collect();
            contents.objects.retain(|key, _| !keys.contains(key));
            let deleted: String = keys.iter().map(|key| format!("<Deleted><Key>{key}</Key></Deleted>")).collect();
            xml(&format!("<DeleteResult>{deleted}</DeleteResult>"))
        }
        ("GET", None) if query.contains_key("list-type") => {
            let prefix = query.get("prefix").map(String::as_str).unwrap_or_default();
            let found = contents.objects.iter().filter(|(key, _)| key.starts_with(prefix));
            let found: String = found
                .map(|(key, object)| {
                    let (time, size) = ("2026-01-31T12:00:00.000Z", object.len());
                    format!("<Contents><Key>{key}</Key><LastModified>{time}</LastModified><ETag>\"whole\"</ETag><Size>{size}</Size></Contents>")
                })
                .collect();
            xml(&format!("<ListBucketResult><IsTruncated>false</IsTruncated>{found}</ListBucketResult>"))
        }
        ("GET" | "HEAD", None) => object(&request, contents.objects.get(&key)),
        _ => HttpResponse::build(StatusCode::NOT_IMPLEMENTED).finish(),
    }
}

/// The response with an object or the requested range of its bytes; 404 without an object.
fn object(request: &HttpRequest, object: Option<&Vec<u8>>) -> HttpResponse {
    let Some(object) = object else { return HttpResponse::NotFound().finish() };
    let size = object.len();
    let requested_range = request.headers().get("range").and_then(|range| range.to_str().ok()?.strip_prefix("bytes="));
    let (mut response, part) = match requested_range.and_then(|range| range.split_once('-')) {
        Some((first, last)) => {
            let (first, last): (usize, usize) = (first.parse().expect("a number"), last.parse().expect("a number"));
            let mut response = HttpResponse::PartialContent();
            response.insert_header(("content-range", format!("bytes {first}-{last}/{size}")));
            (response, &object[first..=last])
        }
        None => (HttpResponse::Ok(), object.as_slice()),
    };
    response.insert_header(("etag", "\"whole\"")).insert_header(("last-modified", "Sat, 31 Jan 2026 12:00:00 GMT"));
    response.body(part.to_vec())
}

fn xml(text: &str) -> HttpResponse {
    HttpResponse::Ok().content_type("application/xml").body(format!("<?xml version=\"1.0\"?>{text}"))
}
