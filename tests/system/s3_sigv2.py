#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What boto3 presigns by default for us-east-1, URLs and forms of version 2, and what must not pass (s3_sigv2.sh):
s3_sigv2.py HOST:PORT: first with such signatures switched off; after the line "off" on standard output it waits for a line on standard
input, before which they are to be switched on.  One start of boto3, which takes half a second of CPU time, does both."""
import base64
import hashlib
import hmac
import http.client
import sys
import time
from urllib.parse import quote, urlsplit

import boto3
from botocore.config import Config

HOST = sys.argv[1]
KEY, SECRET, TOKEN = "AKTEST", "a/secret+1", "to/ken+1="
HELP = ('Config(signature_version=&quot;s3v4&quot;)', "s3.signature_version = s3v4")


def client(key=KEY, secret=SECRET, token=None, **config):
    return boto3.client("s3", endpoint_url=f"http://{HOST}", region_name="us-east-1", aws_access_key_id=key, aws_secret_access_key=secret,
                        aws_session_token=token, config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}, **config))


s3 = client()


def ask(method, url, body=None, headers=None):
    at = urlsplit(url)
    conn = http.client.HTTPConnection(HOST, timeout=60)
    conn.request(method, at.path + ("?" + at.query if at.query else ""), body=body, headers=headers or {})
    r = conn.getresponse()
    data = r.read().decode("utf-8", "replace")
    conn.close()
    return r.status, data, r.headers


def expect(status, method, url, body=None, headers=None, code=None):
    got = ask(method, url, body, headers)
    assert got[0] == status and (code is None or f"<Code>{code}</Code>" in got[1]), f"{method} {url} {headers}: {got[0]} {got[1]}, want {status} {code}"
    return got


def presign(op, key="sig v2/k+~", s=s3, expires=600, **kw):
    method = {"put_object": "PUT", "upload_part": "PUT", "head_object": "HEAD", "delete_object": "DELETE"}.get(op, "GET")
    return method, s.generate_presigned_url(op, Params=dict(kw, Bucket="bkt", **({"Key": key} if key else {})), ExpiresIn=expires)


def form(fields, content=b"content", name="f.txt"):
    lines = [b'--xYz\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (k.encode(), v.encode()) for k, v in fields.items()]
    lines.append(b'--xYz\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n\r\n%s\r\n--xYz--\r\n' % (name.encode(), content))
    return b"".join(lines), {"content-type": "multipart/form-data; boundary=xYz"}


def helps(answer):
    assert all(h in answer[1] for h in HELP), answer[1]


def by_hand(method, path, query="", text=None, until=None, secret=SECRET, key=KEY, fields="", md5="", kind=""):
    """A URL signed by the text of the guide, spelled here."""
    until = str(int(time.time()) + 600 if until is None else until)
    text = text or f"{method}\n{md5}\n{kind}\n{until}\n{fields}{path}" + (f"?{query}" if query else "")
    mac = base64.b64encode(hmac.new(secret.encode(), text.encode(), hashlib.sha1).digest()).decode()
    return f"{path}?{query + '&' if query else ''}AWSAccessKeyId={key}&Expires={until}&Signature={quote(mac, safe='')}"


# boto3 of Debian 12 signs so by default, or this test would show nothing.
assert "AWSAccessKeyId=" in presign("get_object")[1] and "Signature=" in presign("get_object")[1]
assert "AWSAccessKeyId" in s3.generate_presigned_post("bkt", "k")["fields"]

# ---- switched off ----
for op in ("get_object", "head_object", "put_object"):
    got = expect(400, *presign(op))
    if op != "head_object":
        helps(got)
post = s3.generate_presigned_post("bkt", "form/off")
body, headers = form(post["fields"])
helps(expect(400, "POST", "/bkt", body, headers, "InvalidRequest"))
v4 = client(signature_version="s3v4")
expect(200, *presign("put_object", "v4", v4), b"x")
expect(200, *presign("get_object", "v4", v4))
helps(expect(400, "GET", "/bkt/v4", None, {"authorization": "AWS AKTEST:x"}, "InvalidRequest"))
print("off", flush=True)
assert sys.stdin.readline() == "on\n"

# ---- what is served ----
expect(200, *presign("put_object"), b"content")
assert expect(200, *presign("get_object"))[1] == "content"
assert expect(200, *presign("head_object"))[2]["content-length"] == "7"
got = expect(200, *presign("get_object", ResponseContentType="text/plain; a=b", ResponseContentDisposition='attachment; filename="a b.txt"'))
assert got[2]["content-type"] == "text/plain; a=b" and got[2]["content-disposition"] == 'attachment; filename="a b.txt"'
expect(200, *presign("put_object", "typed", ContentType="image/png"), b"x", {"content-type": "image/png"})
assert s3.head_object(Bucket="bkt", Key="typed")["ContentType"] == "image/png"
expect(403, *presign("put_object", "typed", ContentType="image/png"), b"x", {"content-type": "text/html"}, "SignatureDoesNotMatch")
expect(403, *presign("put_object", "typed", ContentType="image/png"), b"x", None, "SignatureDoesNotMatch")
expect(206, *presign("get_object"), None, {"range": "bytes=0-1"})
up = s3.create_multipart_upload(Bucket="bkt", Key="many")["UploadId"]
etag = expect(200, *presign("upload_part", "many", UploadId=up, PartNumber=1), b"part")[2]["etag"]
s3.complete_multipart_upload(Bucket="bkt", Key="many", UploadId=up, MultipartUpload={"Parts": [{"ETag": etag, "PartNumber": 1}]})
assert s3.get_object(Bucket="bkt", Key="many")["Body"].read() == b"part"
# A temporary key; a key that may read alone.
temp = client("AKTEMP", "t-secret-1", TOKEN)
expect(200, *presign("get_object", s=temp))
url = presign("get_object", s=temp)[1]
# The token is covered as the field that it stands for.
expect(403, "GET", url.replace("to%2Fken", "to%2Fkem"), code="SignatureDoesNotMatch")
expect(403, "GET", "&".join(p for p in url.split("&") if not p.startswith("x-amz-security-token")), code="SignatureDoesNotMatch")
read = client("AKREAD", "r/secret+1")
expect(200, *presign("get_object", s=read))
expect(403, *presign("put_object", s=read), b"x", None, "AccessDenied")

# ---- what is not ----
expect(403, *presign("get_object", expires=-5), code="AccessDenied")
expect(400, *presign("get_object", expires=8 * 86400), code="AuthorizationQueryParametersError")
expect(200, *presign("get_object", expires=7 * 86400))
expect(403, *presign("get_object", s=client(secret="wrong-secret")), code="SignatureDoesNotMatch")
expect(403, *presign("get_object", s=client(key="AKNOBODY")), code="InvalidAccessKeyId")
for op, kw in (("delete_object", {}), ("get_object_tagging", {}), ("get_object_acl", {}), ("get_object_attributes", {"ObjectAttributes": ["ETag"]})):
    got = expect(403, *presign(op, **kw))
    assert "s3v4" in got[1] or "SignatureDoesNotMatch" in got[1], got
for op in ("list_objects", "list_objects_v2", "get_bucket_location"):
    assert ask(*presign(op, None))[0] == 403, op
for kw in ({"ACL": "private"}, {"Metadata": {"a": "b"}}, {"StorageClass": "STANDARD_IA"}, {"RequestPayer": "requester"}, {"Tagging": "a=1"}):
    helps(expect(403, *presign("put_object", "moved", **kw), b"x", None, "AccessDenied"))
method, url = presign("get_object")
for extra in ("&versionId=null", "&response-content-type=text%2Fhtml", "&partNumber=1"):
    expect(403, method, url + extra, code="SignatureDoesNotMatch")
expect(403, "PUT", url, b"x", None, "SignatureDoesNotMatch")
expect(403, "HEAD", url)
expect(403, method, url.replace("/bkt/", "/other/", 1), code="SignatureDoesNotMatch")
expect(403, method, url, None, {"x-amz-meta-a": "1"}, "SignatureDoesNotMatch")
for name in ("x-amz-rdma-token", "x-rdma-info", "x-cuobj-rdma-descr"):
    got = expect(403, method, url, None, {name: "000073967e5ff000:00400000:01f2e973:0000:007a03:1:00000000000000000000ffff0f0f0fdf"}, "AccessDenied")
    assert "token" in got[1] and "s3v4" in got[1]
expect(403, method, url, None, {"x-gantry-copies": "1"}, "AccessDenied")
expect(400, method, url + "&X-Amz-Signature=0")
expect(400, method, url + "&Signature=x")
expect(400, method, url, None, {"authorization": "AWS AKTEST:x"})
expect(400, method, url.replace("Expires=", "Expires=x"))
expect(400, method, url.replace("Signature=", "Signature=x"))
expect(501, method, url + "&x-rdma-info=1")
# A value with a parameter in it has the text of two.
expect(200, "GET", by_hand("GET", "/bkt/typed", "response-content-type=a&response-expires=b"))
twin = by_hand("GET", "/bkt/typed", "response-content-type=a&response-expires=b").replace("=a&response-expires=b", "=a%26response-expires%3Db")
expect(403, "GET", twin, code="AccessDenied")
expect(403, "PUT", by_hand("PUT", "/bkt/copy", fields="x-amz-copy-source:bkt/typed\n"), b"", {"x-amz-copy-source": "bkt/typed"}, "AccessDenied")
expect(200, "PUT", by_hand("PUT", "/bkt/meta", fields="x-amz-acl:private\nx-amz-meta-b:1  2\n"), b"x", {"X-Amz-Meta-B": "1  2", "x-amz-acl": "private"})
assert s3.head_object(Bucket="bkt", Key="meta")["Metadata"] == {"b": "1  2"}
expect(400, "PUT", by_hand("PUT", "/bkt/meta", md5="1B2M2Y8AsgTpgAmY7PhCfg=="), b"x", {"content-md5": "1B2M2Y8AsgTpgAmY7PhCfg=="}, "BadDigest")
# In Authorization never; a preflight is the bucket's.
helps(expect(400, "GET", "/bkt/typed", None, {"authorization": "AWS AKTEST:x"}, "InvalidRequest"))
expect(403, "OPTIONS", url, None, {"origin": "http://a.test", "access-control-request-method": "GET"}, "AccessForbidden")

# ---- forms ----
post = s3.generate_presigned_post("bkt", "form/${filename}", Fields={"x-amz-meta-a": "b"}, Conditions=[["content-length-range", "1", "10"], {"x-amz-meta-a": "b"}])
assert "signature" in post["fields"]
body, headers = form(post["fields"])
expect(204, "POST", "/bkt", body, headers)
got = s3.get_object(Bucket="bkt", Key="form/f.txt")
assert got["Body"].read() == b"content" and got["Metadata"] == {"a": "b"}
expect(400, "POST", "/bkt", *form(post["fields"], b"longer than ten bytes"), "EntityTooLarge")
expect(403, "POST", "/bkt", *form(dict(post["fields"], key="else")), "AccessDenied")
expect(403, "POST", "/bkt", *form(dict(post["fields"], signature="A" * 27 + "=")), "SignatureDoesNotMatch")
expect(400, "POST", "/bkt", *form(dict(post["fields"], signature="x")))
expect(403, "POST", "/bkt", *form(dict(post["fields"], AWSAccessKeyId="AKREAD")), "SignatureDoesNotMatch")
expect(403, "POST", "/bkt", *form({k: v for k, v in post["fields"].items() if k != "signature"}), "AccessDenied")
post = temp.generate_presigned_post("bkt", "form/temp")
expect(204, "POST", "/bkt", *form(post["fields"]))
expect(403, "POST", "/bkt", *form({k: v for k, v in post["fields"].items() if k != "x-amz-security-token"}))
post = read.generate_presigned_post("bkt", "form/no")
expect(403, "POST", "/bkt", *form(post["fields"]), "AccessDenied")
