#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Requests of boto3 that S3 servers are reported to answer wrongly, against the daemon at URL_S3 (boto3.sh, sigv2.sh).

SIGV2 is "presigned" where the daemon takes URLs and forms signed by version 2, which boto3 makes by default in us-east-1; then only these are tried.
"""
import os
import re
import sys
import traceback
import urllib.error
import urllib.request
import uuid

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

URL, SIGV2 = os.environ["URL_S3"], os.environ.get("SIGV2") == "presigned"
BUCKET = "reports"


def client(**kw):
    return boto3.client("s3", endpoint_url=URL, config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}, **kw))


s3 = client(signature_version="s3v4")
plain = client()
steps = []


def step(f):
    steps.append(f)
    return f


def same(got, want):
    assert got == want, f"{got!r}, not {want!r}"


def error(code, status, f, **kw):
    try:
        f(Bucket=BUCKET, **kw)
    except ClientError as e:
        same((e.response["Error"]["Code"], e.response["ResponseMetadata"]["HTTPStatusCode"]), (code, status))
        return
    raise AssertionError(f"{f.__name__}: no error, want {code}")


def http(url, method="GET", body=None, status=200, **headers):
    r = urllib.request.Request(url, data=body, method=method, headers={k.replace("_", "-"): v for k, v in headers.items()})
    try:
        a = urllib.request.build_opener(urllib.request.ProxyHandler({})).open(r)
    except urllib.error.HTTPError as e:
        a = e
    text = a.read()
    assert a.status == status, f"{method} {url}: {a.status}, not {status}: {text.decode()}"
    return text, a.headers


def link(operation, who=s3, **params):
    return who.generate_presigned_url(operation, {"Bucket": BUCKET, **params}, ExpiresIn=600)


def form(post, body, status, **more):
    boundary = uuid.uuid4().hex
    parts = [(f'name="{k}"', v.encode()) for k, v in {**post["fields"], **more}.items()] + [('name="file"; filename="f.bin"', body)]
    data = b"".join(f"--{boundary}\r\nContent-Disposition: form-data; {k}\r\n\r\n".encode() + v + b"\r\n" for k, v in parts)
    return http(post["url"], "POST", data + f"--{boundary}--\r\n".encode(), status, Content_Type=f"multipart/form-data; boundary={boundary}")


@step
def head_with_range():
    got = s3.head_object(Bucket=BUCKET, Key="five", Range="bytes=0-1")
    same((got["ResponseMetadata"]["HTTPStatusCode"], got["ResponseMetadata"]["HTTPHeaders"].get("content-range"), got["ContentLength"]),
         (206, "bytes 0-1/5", 2))
    error("416", 416, s3.head_object, Key="five", Range="bytes=5-")
    error("412", 412, s3.head_object, Key="five", Range="bytes=5-", IfMatch='"0"')
    same(s3.head_object(Bucket=BUCKET, Key="five", Range="nonsense")["ContentLength"], 5)


@step
def tail_of_an_empty_object():
    got = s3.get_object(Bucket=BUCKET, Key="empty", Range="bytes=-1")
    same((got["Body"].read(), got["ContentLength"], "ContentRange" in got, got["ResponseMetadata"]["HTTPStatusCode"]), (b"", 0, False, 200))
    for r in "bytes=-0", "bytes=0-0", "bytes=0-":
        error("InvalidRange", 416, s3.get_object, Key="empty", Range=r)


@step
def content_type():
    same(s3.head_object(Bucket=BUCKET, Key="five")["ContentType"], "binary/octet-stream")
    same(s3.get_object(Bucket=BUCKET, Key="five", Range="bytes=1-2")["ContentType"], "binary/octet-stream")
    upload = {"Bucket": BUCKET, "Key": "parts", "UploadId": s3.create_multipart_upload(Bucket=BUCKET, Key="parts")["UploadId"]}
    etag = s3.upload_part(**upload, PartNumber=1, Body=b"x")["ETag"]
    s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": etag}]})
    s3.copy_object(Bucket=BUCKET, Key="copy", CopySource=f"{BUCKET}/parts")
    for key in "parts", "copy":
        same(s3.head_object(Bucket=BUCKET, Key=key)["ContentType"], "binary/octet-stream")


@step
def copy_onto_itself():
    for name in "STANDARD_IA", "STANDARD_IA", "STANDARD", "STANDARD":
        s3.copy_object(Bucket=BUCKET, Key="five", CopySource=f"{BUCKET}/five", StorageClass=name)
        same(s3.list_objects_v2(Bucket=BUCKET, Prefix="five")["Contents"][0]["StorageClass"], name)
    error("InvalidRequest", 400, s3.copy_object, Key="five", CopySource=f"{BUCKET}/five")


@step
def markers_of_uploads():
    upload = s3.create_multipart_upload(Bucket=BUCKET, Key="marked")["UploadId"]
    got = s3.list_multipart_uploads(Bucket=BUCKET, UploadIdMarker="garbage")
    assert upload in [u["UploadId"] for u in got["Uploads"]] and not got.get("UploadIdMarker"), got
    error("InvalidArgument", 400, s3.list_multipart_uploads, KeyMarker="a", UploadIdMarker="garbage")
    s3.abort_multipart_upload(Bucket=BUCKET, Key="marked", UploadId=upload)


@step
def configurations_that_are_off():
    s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Suspended"})
    assert s3.get_bucket_versioning(Bucket=BUCKET).get("Status") in (None, "Suspended")
    error("NotImplemented", 501, s3.put_bucket_versioning, VersioningConfiguration={"Status": "Enabled"})
    s3.put_bucket_logging(Bucket=BUCKET, BucketLoggingStatus={})


@step
def if_match_of_what_is_not_there():
    upload = {"Bucket": BUCKET, "Key": "if", "UploadId": s3.create_multipart_upload(Bucket=BUCKET, Key="if")["UploadId"]}
    parts = {"Parts": [{"PartNumber": 1, "ETag": s3.upload_part(**upload, PartNumber=1, Body=b"x")["ETag"]}]}

    def add(request, **_):
        request.headers["If-Match"] = '"x"'
    conditional = client(signature_version="s3v4")
    conditional.meta.events.register("before-sign.s3.CompleteMultipartUpload", add)
    error("NoSuchKey", 404, conditional.complete_multipart_upload, Key="if", UploadId=upload["UploadId"], MultipartUpload=parts)
    s3.complete_multipart_upload(**upload, MultipartUpload=parts)


@step
def sha256_that_is_not_signed():
    url = link("put_object", Key="unsigned")
    http(url, "PUT", b"x", x_amz_content_sha256="UNSIGNED-PAYLOAD")
    http(url, "PUT", b"x", 403, x_amz_storage_class="STANDARD")


@step
def numbers_as_strings():
    post = s3.generate_presigned_post(BUCKET, "length", Conditions=[["content-length-range", "2", "10"]])
    form(post, b"12345", 204)
    for body, code in (b"1", b"EntityTooSmall"), (b"12345678901", b"EntityTooLarge"):
        assert code in form(post, body, 400)[0]


@step
def lists_of_types():
    post = s3.generate_presigned_post(BUCKET, "image", Conditions=[["starts-with", "$Content-Type", "image/"]])
    for types, status in ("image/png", 204), ("image/png,image/gif", 204), ("image/png,text/plain", 403):
        form(post, b"x", status, **{"Content-Type": types})


@step
def names_as_they_are_spelled():
    a = s3.get_object(Bucket=BUCKET, Key="five", Range="bytes=1-2")
    names = list(a["Body"]._raw_stream.headers)
    for name in "ETag", "Last-Modified", "Content-Type", "Content-Range", "Content-Length", "Accept-Ranges", "Date":
        assert name in names, (name, names)
    assert "x-amz-request-id" in names, names


@step
def signatures_of_version_2():
    get = link("get_object", plain, Key="five", ResponseContentType="a/b")
    put = link("put_object", plain, Key="put")
    post = plain.generate_presigned_post(BUCKET, "form/${filename}", Conditions=[["content-length-range", 1, 9]])
    assert "AWSAccessKeyId=" in get and "X-Amz-" not in get, get
    assert "signature" in post["fields"], post
    if not SIGV2:
        for said in http(get, status=400)[0], http(put, "PUT", b"x", 400)[0], form(post, b"x", 400)[0]:
            assert b"s3v4" in said, said
        error("NoSuchKey", 404, s3.get_object, Key="put")
        return
    text, headers = http(get)
    same((text, headers["Content-Type"]), (b"12345", "a/b"))
    http(link("head_object", plain, Key="five"), "HEAD")
    http(put, "PUT", b"by link", Content_Type="")
    same(s3.get_object(Bucket=BUCKET, Key="put")["Body"].read(), b"by link")
    form(post, b"by form", 204)
    same(s3.get_object(Bucket=BUCKET, Key="form/f.bin")["Body"].read(), b"by form")
    form(post, b"0123456789", 400)
    typed = link("put_object", plain, Key="typed", ContentType="x/y")
    http(typed, "PUT", b"x", Content_Type="x/y")
    same(s3.head_object(Bucket=BUCKET, Key="typed")["ContentType"], "x/y")
    http(typed, "PUT", b"x", 403, Content_Type="x/z")
    # boto3 moves metadata into the query: those are not taken from there, and with them nothing is.
    http(link("put_object", plain, Key="told", Metadata={"a": "b"}), "PUT", b"x", 403, x_amz_meta_a="b", Content_Type="")
    error("404", 404, s3.head_object, Key="told")
    http(put, "PUT", b"x", 403, x_amz_meta_a="b", Content_Type="")
    http(get.replace("a%2Fb", "a%2Fc"), status=403)
    http(re.sub("Signature=[^&]*", "Signature=" + "A" * 27 + "%3D", get), status=403)
    http(re.sub(r"Expires=(\d+)", lambda m: f"Expires={int(m[1]) + 60}", get), status=403)
    http(get.replace("/five", "/put"), status=403)
    http(plain.generate_presigned_url("get_object", {"Bucket": BUCKET, "Key": "five"}, ExpiresIn=-5), status=403)
    http(link("delete_object", plain, Key="put"), "PUT", b"x", 403, Content_Type="")
    bad = dict(post, fields={**post["fields"], "signature": "A" * 27 + "="})
    form(bad, b"x", 403)
    # Headers by version 2 stay refused.
    error("InvalidRequest", 400, client(signature_version="s3").list_objects_v2)


s3.create_bucket(Bucket=BUCKET)
s3.put_object(Bucket=BUCKET, Key="five", Body=b"12345")
s3.put_object(Bucket=BUCKET, Key="empty", Body=b"")
failed = 0
for f in steps if not SIGV2 else [signatures_of_version_2]:
    try:
        f()
        print(f"ok    boto3: {f.__name__}", flush=True)
    except (AssertionError, ClientError, KeyError) as e:
        failed += 1
        print(f"FAIL  boto3: {f.__name__}: {type(e).__name__}: {e}, line {traceback.extract_tb(e.__traceback__)[1].lineno}", flush=True)
sys.exit(failed > 0)
