#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Conditions of access keys over HTTP, see conditions.sh: python3 conditions.py URL HOST:PORT-BEHIND-A-BALANCER DIRECTORY-OF-THE-KEYS"""
import re
import sys
import urllib.error
import urllib.request

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

import proxy

URL, PROXIED, DIR = sys.argv[1:]
NO_DELETE = "The access key may not delete (no_delete)."
NO_OVERWRITE = "The object exists, and the access key may not change existing objects (no_overwrite)."


def client(key, secret, url=URL):
    return boto3.client("s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id=key, aws_secret_access_key=secret,
                        config=Config(signature_version="s3v4", s3={"addressing_style": "path"}, retries={"max_attempts": 0}))


def made(name, url=URL):
    return client(*re.findall(r"=(\S+)", open(f"{DIR}/{name}").read()), url)


def refused(sentence, call, code="AccessDenied", status=403, **words):
    try:
        call(Bucket="bkt", **words)
    except ClientError as e:
        r = e.response
        assert (r["Error"]["Code"], r["ResponseMetadata"]["HTTPStatusCode"]) == (code, status), r
        assert sentence is None or r["Error"]["Message"] == sentence, r
        return
    sys.exit(f"not refused: {call} {words}")


def body(s3, key):
    return s3.get_object(Bucket="bkt", Key=key)["Body"].read()


def post(s3, key, data):
    """A form's status and answer."""
    form = s3.generate_presigned_post("bkt", key, ExpiresIn=60)
    b = b"".join(b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (k.encode(), v.encode()) for k, v in form["fields"].items())
    b += b'--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n' + data + b"\r\n--x--\r\n"
    try:
        return urllib.request.urlopen(urllib.request.Request(form["url"], b, {"Content-Type": "multipart/form-data; boundary=x"})).status, ""
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()


def if_absent(params, **_):
    params["headers"]["If-None-Match"] = "*"


def upload(s3, key, data):
    """An upload of one part, all but its completion."""
    u = s3.create_multipart_upload(Bucket="bkt", Key=key)["UploadId"]
    part = s3.upload_part(Bucket="bkt", Key=key, UploadId=u, PartNumber=1, Body=data)
    return {"Key": key, "UploadId": u, "MultipartUpload": {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}}


def no_overwrite(s3, everything):
    for key, data in (("o", b"first"), ("inline", b"x"), ("large", b"y" * 300000)):
        s3.put_object(Bucket="bkt", Key=key, Body=data)
        refused(NO_OVERWRITE, s3.put_object, Key=key, Body=b"second")
        refused(NO_OVERWRITE, s3.put_object, Key=key, Body=b"z" * 400000)
        # What the client asks itself is told first.
        s3.meta.events.register("before-call.s3.PutObject", if_absent)
        refused(None, s3.put_object, Key=key, Body=b"second", code="PreconditionFailed", status=412)
        s3.meta.events.unregister("before-call.s3.PutObject", if_absent)
        assert body(s3, key) == data
    everything.put_object(Bucket="bkt", Key="source", Body=b"source", Tagging="a=1", Metadata={"m": "1"})
    refused(NO_OVERWRITE, s3.copy_object, Key="o", CopySource="bkt/source")
    refused(NO_OVERWRITE, s3.copy_object, Key="source", CopySource="bkt/source", MetadataDirective="REPLACE", Metadata={"m": "2"})
    s3.copy_object(Bucket="bkt", Key="copied", CopySource="bkt/source")
    refused(NO_OVERWRITE, s3.put_object_tagging, Key="source", Tagging={"TagSet": []})
    refused(NO_OVERWRITE, s3.delete_object_tagging, Key="source")
    assert s3.head_object(Bucket="bkt", Key="source")["Metadata"] == {"m": "1"}
    assert s3.get_object_tagging(Bucket="bkt", Key="source")["TagSet"] == [{"Key": "a", "Value": "1"}]
    u = upload(s3, "o", b"parts")
    refused(NO_OVERWRITE, s3.complete_multipart_upload, **u)
    # It is not used up: whoever may completes it, or its own writer gives it up.
    s3.abort_multipart_upload(Bucket="bkt", Key="o", UploadId=u["UploadId"])
    u = upload(s3, "of-parts", b"parts")
    s3.complete_multipart_upload(Bucket="bkt", **u)
    s3.complete_multipart_upload(Bucket="bkt", **u)  # a client that got no answer: it is done
    refused(NO_OVERWRITE, s3.complete_multipart_upload, **upload(s3, "of-parts", b"others"))
    assert body(s3, "of-parts") == b"parts"
    assert post(s3, "posted", b"first")[0] == 204
    status, text = post(s3, "posted", b"second")
    assert status == 403 and NO_OVERWRITE in text, (status, text)
    assert body(s3, "posted") == b"first" and body(s3, "o") == b"first"
    # Deleting is not overwriting.
    s3.delete_object(Bucket="bkt", Key="o")
    s3.put_object(Bucket="bkt", Key="o", Body=b"again")


def no_delete(s3, everything):
    s3.put_object(Bucket="bkt", Key="o", Body=b"kept")
    s3.put_object_tagging(Bucket="bkt", Key="o", Tagging={"TagSet": [{"Key": "a", "Value": "2"}]})
    s3.delete_object_tagging(Bucket="bkt", Key="o")
    refused(NO_DELETE, s3.delete_object, Key="o")
    refused(NO_DELETE, s3.delete_object, Key="not-there")
    got = s3.delete_objects(Bucket="bkt", Delete={"Objects": [{"Key": "o"}, {"Key": "large"}]})
    assert {(e["Key"], e["Code"], e["Message"]) for e in got["Errors"]} == {(k, "AccessDenied", NO_DELETE) for k in ("o", "large")}, got
    assert "Deleted" not in got, got
    everything.create_bucket(Bucket="empty")
    try:
        s3.delete_bucket(Bucket="empty")
        sys.exit("a bucket was deleted")
    except ClientError as e:
        assert e.response["Error"]["Message"] == NO_DELETE, e.response
    rule = {"Rules": [{"ID": "r", "Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 1}}]}
    refused(NO_DELETE, s3.put_bucket_lifecycle_configuration, LifecycleConfiguration=rule)
    everything.delete_bucket(Bucket="empty")
    s3.abort_multipart_upload(Bucket="bkt", Key="up", UploadId=upload(s3, "up", b"parts")["UploadId"])
    assert body(s3, "o") == b"kept"


def partly(s3):
    """One of its grants is enough."""
    for key in "partly", "tmp/k":
        s3.put_object(Bucket="bkt", Key=key, Body=b"1")
    refused(NO_OVERWRITE, s3.put_object, Key="partly", Body=b"2")
    refused(NO_DELETE, s3.delete_object, Key="partly")
    s3.put_object(Bucket="bkt", Key="tmp/k", Body=b"2")
    got = s3.delete_objects(Bucket="bkt", Delete={"Objects": [{"Key": "partly"}, {"Key": "tmp/k"}]})
    assert [d["Key"] for d in got["Deleted"]] == ["tmp/k"] and [e["Key"] for e in got["Errors"]] == ["partly"], got


def addresses():
    assert body(made("near"), "o") == b"kept"
    refused("The access key is not good from this address (from).", made("far").get_object, Key="o")
    status, text = post(made("far"), "posted-from-afar", b"x")
    assert status == 403 and "(from)" in text, (status, text)
    # Behind a balancer the client's address counts, and not the balancer's.
    url = made("near", "http://localhost").generate_presigned_url("get_object", Params={"Bucket": "bkt", "Key": "o"}, ExpiresIn=60)
    path = url[len("http://localhost"):].encode()
    for peer, status in ("192.0.2.9", 200), ("198.51.100.1", 403), ("fd00::9", 200), ("fd00:0:0:1::", 200), ("fe80::9", 403), (None, 403):
        got = proxy.Conn(PROXIED, proxy.BALANCER, proxy.header(peer)).ask(b"", path)
        assert got and got[0] == status, (peer, got)


def main():
    everything, worm = made("all"), made("worm")
    no_overwrite(made("once"), everything)
    no_delete(made("keep"), everything)
    refused(NO_OVERWRITE, worm.put_object, Key="o", Body=b"other")
    refused(NO_DELETE, worm.delete_object, Key="o")
    partly(client("AKPARTLY", "partly-secret"))
    addresses()


main()
