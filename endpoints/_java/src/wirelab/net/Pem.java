package wirelab.net;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.List;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;

/** Certificates and keys from PEM files. */
public final class Pem {
    /** The alias of the one entry of a key store. */
    public static final String ALIAS = "wirelab";

    /** Key stores live in memory only; a password is a formality. */
    public static final String PASSWORD = "in-memory";

    private Pem() {
    }

    public static X509Certificate[] certificates(Path path) throws Failure {
        try {
            byte[] pem = Files.readAllBytes(path);
            return CertificateFactory.getInstance("X.509").generateCertificates(new ByteArrayInputStream(pem)).stream()
                .map(X509Certificate.class::cast).toArray(X509Certificate[]::new);
        } catch (IOException | GeneralSecurityException error) {
            throw new Failure(ErrorKind.OTHER, "reading the certificates " + path + ": " + error);
        }
    }

    /** A private key, PKCS #8. */
    public static PrivateKey key(Path path) throws Failure {
        try {
            String text = Files.readString(path).replaceAll("-----[A-Z ]+-----|\\s", "");
            PKCS8EncodedKeySpec encoded = new PKCS8EncodedKeySpec(Base64.getDecoder().decode(text));
            for (String algorithm : List.of("EC", "RSA", "EdDSA")) {
                try {
                    return KeyFactory.getInstance(algorithm).generatePrivate(encoded);
                } catch (InvalidKeySpecException another) {
                    // Only the right factory accepts the encoding.
                }
            }
            throw new Failure(ErrorKind.OTHER, "the private key " + path + " is not PKCS #8 of a known kind");
        } catch (IOException | GeneralSecurityException | IllegalArgumentException error) {
            throw new Failure(ErrorKind.OTHER, "reading the private key " + path + ": " + error);
        }
    }

    /** A server's chain and key. */
    public static KeyStore identity(Path certificate, Path key) throws Failure {
        try {
            KeyStore store = empty();
            store.setKeyEntry(ALIAS, key(key), PASSWORD.toCharArray(), certificates(certificate));
            return store;
        } catch (GeneralSecurityException error) {
            throw new Failure(ErrorKind.OTHER, "making a key store of " + certificate + ": " + error);
        }
    }

    /** Authorities to trust; null for the system's. */
    public static KeyStore authorities(Path anchors) throws Failure {
        if (anchors == null) {
            return null;
        }
        try {
            KeyStore store = empty();
            int number = 0;
            for (X509Certificate anchor : certificates(anchors)) {
                store.setCertificateEntry("anchor-" + number++, anchor);
            }
            return store;
        } catch (GeneralSecurityException error) {
            throw new Failure(ErrorKind.OTHER, "making a trust store of " + anchors + ": " + error);
        }
    }

    private static KeyStore empty() throws GeneralSecurityException, Failure {
        try {
            KeyStore store = KeyStore.getInstance("PKCS12");
            store.load(null, PASSWORD.toCharArray());
            return store;
        } catch (IOException error) {
            throw new Failure(ErrorKind.OTHER, "making an empty key store: " + error);
        }
    }
}
