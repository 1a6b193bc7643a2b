#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A page of another origin in Chromium, which uses what boto3 signs for the daemon at URL_S3 (browser.sh)."""
import http.server
import os
import re
import sys
import threading
import time
import traceback

import boto3
from botocore.config import Config
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

URL, BUCKET = os.environ["URL_S3"], "page"
s3 = boto3.client("s3", endpoint_url=URL, config=Config(s3={"addressing_style": "path"}, signature_version="s3v4", retries={"max_attempts": 1}))
steps = []


def step(f):
    steps.append(f)
    return f


def same(got, want):
    assert got == want, f"{got!r}, not {want!r}"


class Page(http.server.BaseHTTPRequestHandler):
    """An empty page at every path."""

    def do_GET(self):
        body = b"<!doctype html><title>page</title><body></body>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
threading.Thread(target=server.serve_forever, daemon=True).start()
ORIGIN = f"http://127.0.0.1:{server.server_port}"


def chromium():
    o = Options()
    o.binary_location = "/usr/bin/chromium"
    for a in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-proxy-server"):
        o.add_argument(a)
    d = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=o)
    d.set_script_timeout(120)
    d.set_page_load_timeout(120)
    d.get(ORIGIN)
    return d


def fetched(url, **options):
    """What fetch gives the page: status, text, and the headers that it may see; or the error's text, where it may see nothing."""
    return driver.execute_async_script("""
        const [url, { form, ...options }, done] = arguments;
        if (form) {
          options.body = new FormData();
          for (const [name, value] of Object.entries(form.fields)) options.body.append(name, value);
          options.body.append("file", new Blob([form.body], { type: form.type }), form.name);
        }
        fetch(url, options)
          .then(async (a) => done({ status: a.status, text: await a.text(), headers: Object.fromEntries(a.headers) }), (e) => done({ error: String(e) }));
        """, url, options)


def link(operation, seconds=600, **params):
    return s3.generate_presigned_url(operation, {"Bucket": BUCKET, **params}, ExpiresIn=seconds)


def status(answer, want):
    assert answer.get("status") == want, f"{answer}, not {want}"
    return answer


def rules(**more):
    s3.put_bucket_cors(Bucket=BUCKET, CORSConfiguration={"CORSRules": [
        {"AllowedOrigins": [ORIGIN], "AllowedMethods": ["GET", "HEAD", "PUT", "POST"], "AllowedHeaders": ["*"],
         "ExposeHeaders": ["ETag", "Content-Range", "Content-Length"], **more}]})


@step
def upload_by_url():
    rules()
    put = link("put_object", Key="up", ContentType="text/x", Metadata={"who": "page"}, StorageClass="STANDARD_IA")
    headers = {"content-type": "text/x", "x-amz-meta-who": "page", "x-amz-storage-class": "STANDARD_IA"}
    got = status(fetched(put, method="PUT", body="by page", headers=headers), 200)
    assert got["headers"]["etag"], got
    same(status(fetched(link("get_object", Key="up")), 200)["text"], "by page")
    same(s3.head_object(Bucket=BUCKET, Key="up")["Metadata"], {"who": "page"})
    # The page may read the refusal of a URL that is no longer good, or was changed.
    old = link("put_object", 1, Key="up")
    time.sleep(2.1)
    for url in old, re.sub("(Signature=)..", r"\1zz", link("put_object", Key="up")), link("get_object", Key="up"):
        got = fetched(url, method="PUT", body="x", headers={"content-type": "text/x"})
        assert got.get("status") in (400, 403) and "<Code>" in got["text"], got
    same(status(fetched(link("get_object", Key="up")), 200)["text"], "by page")


@step
def upload_by_parts():
    rules()
    upload = s3.create_multipart_upload(Bucket=BUCKET, Key="parts")["UploadId"]
    parts = []
    for n, body in (1, "x" * (5 << 20)), (2, "the rest"):
        url = link("upload_part", Key="parts", UploadId=upload, PartNumber=n)
        parts.append({"PartNumber": n, "ETag": status(fetched(url, method="PUT", body=body), 200)["headers"]["etag"]})
    s3.complete_multipart_upload(Bucket=BUCKET, Key="parts", UploadId=upload, MultipartUpload={"Parts": parts})
    same(s3.head_object(Bucket=BUCKET, Key="parts")["ContentLength"], (5 << 20) + 8)


@step
def ranges():
    """As DuckDB in a page reads a file: HEAD with a range, then the last bytes."""
    rules()
    s3.put_object(Bucket=BUCKET, Key="five", Body=b"12345")
    s3.put_object(Bucket=BUCKET, Key="empty", Body=b"")
    got = status(fetched(link("head_object", Key="five"), method="HEAD", headers={"range": "bytes=0-"}), 206)
    same((got["headers"]["content-range"], got["headers"]["content-length"]), ("bytes 0-4/5", "5"))
    same(status(fetched(link("get_object", Key="five"), headers={"range": "bytes=-2"}), 206)["text"], "45")
    same(status(fetched(link("get_object", Key="empty"), headers={"range": "bytes=-8"}), 200)["text"], "")


@step
def rules_alone_decide():
    for origin, methods in ("http://other.test", ["PUT"]), (ORIGIN, ["GET"]):
        rules(AllowedOrigins=[origin], AllowedMethods=methods)
        assert "error" in fetched(link("put_object", Key="kept-out"), method="PUT", body="x")
    s3.delete_bucket_cors(Bucket=BUCKET)
    assert "error" in fetched(link("put_object", Key="kept-out"), method="PUT", body="x")
    same(s3.list_objects_v2(Bucket=BUCKET, Prefix="kept-out")["KeyCount"], 0)


@step
def upload_by_form():
    rules()
    image = s3.generate_presigned_post(BUCKET, "in/${filename}", Conditions=[["starts-with", "$Content-Type", "image/"], ["content-length-range", "1", "9"]])
    for types, body, want in ("image/png", "x", 204), ("image/png,text/html", "x", 403), ("image/png", "0123456789", 400):
        form = {"fields": {"Content-Type": types, **image["fields"]}, "name": "f.png", "type": "image/png", "body": body}
        status(fetched(image["url"], method="POST", form=form), want)
    same(s3.head_object(Bucket=BUCKET, Key="in/f.png")["ContentType"], "image/png")


@step
def form_that_comes_back():
    """A form of HTML, whose answer sends the browser to a page with the file's name."""
    back = f"{ORIGIN}/back?f=${{filename}}"
    post = s3.generate_presigned_post(BUCKET, "form/${filename}", Fields={"success_action_redirect": back},
                                      Conditions=[["starts-with", "$success_action_redirect", ORIGIN]])
    driver.execute_script("""
        const [url, fields] = arguments;
        const form = document.createElement("form");
        Object.assign(form, { action: url, method: "POST", enctype: "multipart/form-data" });
        const input = (name, type) => form.appendChild(Object.assign(document.createElement("input"), { name, type }));
        for (const [name, value] of Object.entries(fields)) input(name, "hidden").value = value;
        const chosen = new DataTransfer();
        chosen.items.add(new File(["by form"], "a b.txt"));
        input("file", "file").files = chosen.files;
        document.body.append(form);
        form.submit();
        """, post["url"], post["fields"])
    WebDriverWait(driver, 60).until(lambda d: "/back" in d.current_url or "Error" in d.page_source, "the form was not answered")
    assert re.match(re.escape(ORIGIN) + r"/back\?f=a(%20|\+| )b\.txt&bucket=page&key=", driver.current_url), (driver.current_url, driver.page_source)
    same(s3.get_object(Bucket=BUCKET, Key="form/a b.txt")["Body"].read(), b"by form")


s3.create_bucket(Bucket=BUCKET)
driver = chromium()
failed = 0
try:
    for f in steps:
        try:
            f()
            print(f"ok    browser: {f.__name__}", flush=True)
        except (AssertionError, KeyError, s3.exceptions.ClientError, WebDriverException) as e:
            failed += 1
            print(f"FAIL  browser: {f.__name__}: {type(e).__name__}: {e}, line {traceback.extract_tb(e.__traceback__)[1].lineno}", flush=True)
            driver.get(ORIGIN)
finally:
    driver.quit()
sys.exit(failed > 0)
